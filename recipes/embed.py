"""Texts as vectors in a file, as many as there are: an `EmbedConfig` in, an `EmbedResult` out."""

import hashlib
import time
from pathlib import Path

from compress.exported_vectors import check_choice, nearest_choice
from compress.memory import peak_memory_bytes
from compress.process import default_threads
from compress.runtimes import runs_a_graph, why_unavailable
from encoder.errors import ConfigError, Problems
from encoder.files import OutputFolder, write_json
from encoder.rows import TokenizedRows
from encoder.sources import check_place
from encoder.text_stream import TextStream, stream_texts
from encoder.vector_choice import Choice, choose
from encoder.vector_file import UnfinishedVectors
from recipes.account import describe_run
from recipes.embed_config import EmbedConfig
from recipes.encoders import EncoderResult, FoundEncoder, describe_encoder, find_encoder
from recipes.observer import Observer, Recorder, Silent
from recipes.result import Encoded, Run, describe_parent
from recipes.resuming import STARTED_FILE, check_unchanged
from recipes.scoring import choose_device, describe_cut

# Texts that are read, tokenized and written at a time: enough to sort by length, a few megabytes of vectors.
PIECE_ROWS = 4096
VECTORS_FILE = "vectors.npy"
# Options that change no vector. The model and the texts are compared by their content.
FREE_TO_CHANGE = {"model", "input", "output", "compare", "device", "threads", "overwrite", "resume"}


class EmbedResult(Run):
    """One run of `enc embed`. ``rows_per_s`` and ``encoded`` are of the rows of this run.

    ``resumed_from_row`` rows were there already, from a run that was interrupted.
    """

    encoder: EncoderResult
    input: str
    rows: int
    dimension: int
    pooling: str
    layers: str
    normalized: bool
    prefix: str
    encoded: Encoded
    runtime: str
    device: str
    threads: int
    resumed_from_row: int | None
    rows_per_s: float | None
    peak_memory_bytes: int | None


def embed(config: EmbedConfig, observer: Observer | None = None) -> EmbedResult:
    """The vectors of the texts in ``config.input``, in their order, in the file ``config.output``.

    Memory is bounded: of the texts and their vectors only a piece is held (see ``stream_texts``).

    Raises:
        ConfigError, DataError, CheckpointError: before anything is computed; a broken line when it is
            reached.
        EncError: the disk is full.
    """
    assert config.input is not None
    assert config.output is not None
    started = time.perf_counter()
    output = OutputFolder(config.output, overwrite=config.overwrite, resume=config.resume)
    recorder = Recorder(observer or Silent())
    recorder.stage(f"Looking at {config.model}")
    problems, found = Problems(), None
    with problems.collected():
        output.check_file()
    with problems.collected():
        check_place(str(config.input))
    with problems.collected():
        found = find_encoder(config.model, config.max_length, exported=True)
    problems.tell(output)
    assert found is not None
    runtime = _choose_runtime(config, found)
    choice = _choose_vectors(config, found, recorder)
    device = _choose_device(config, runtime)
    recorder.stage(f"Reading {config.input}")
    texts = stream_texts(config.input, text_column=config.text_column, encoding=config.encoding)
    for note in texts.notes:
        recorder.note(note)
    output.check_room(texts.num_rows * found.config.hidden_size * 4 * (2 if _is_parquet(config) else 1))
    encoder = describe_encoder(found)
    _claim(output, config, encoder)
    with UnfinishedVectors(output.work / VECTORS_FILE, found.config.hidden_size) as vectors:
        before = vectors.rows
        if before:
            recorder.note(f"{before:,} of {texts.num_rows:,} texts were embedded before.")
        embedding = _Embedding(config, found, choice, (runtime, device), recorder)
        embedding.run(texts, vectors)
        result = embedding.describe(encoder, vectors, before, time.perf_counter() - started)
        if _is_parquet(config):
            recorder.stage(f"Writing {config.output}")
            about = result.model_dump(mode="json", include={*_ABOUT}) | {"encoder": encoder.model_dump()}
            whole = vectors.finish_parquet(texts.pieces(PIECE_ROWS, 0), about)
        else:
            whole = vectors.finish_npy()
    output.finish_file(whole)
    return result


def _is_parquet(config: EmbedConfig) -> bool:
    return config.output is not None and config.output.suffix.lower() == ".parquet"


# What a .parquet file says of its vectors.
_ABOUT = ("pooling", "layers", "normalized", "prefix", "runtime")


class _Embedding:
    """The embedding of a file while it goes on, in the runtime and on the device that ``place`` names.

    Counts what was cut and how long it took.
    """

    def __init__(
        self,
        config: EmbedConfig,
        found: FoundEncoder,
        choice: Choice,
        place: tuple[str, str],
        recorder: Recorder,
    ) -> None:
        self.config, self.found, self.choice = config, found, choice
        (self.runtime, self.device), self.recorder = place, recorder
        self.threads = _count_threads(config, self.runtime)
        self.encoded = Encoded(rows=0, rows_cut=0, tokens=0, tokens_lost=0, tokens_unknown=0)
        self.seconds = 0.0
        self.empty = 0

    def run(self, texts: TextStream, vectors: UnfinishedVectors) -> None:
        """Embed the texts that are not among ``vectors`` yet, and append them."""
        from compress.embedders import open_embedder
        from encoder.embedding import normalize

        embed = open_embedder(
            self.runtime, self.found.folder, self.choice, device=self.device, threads=self.threads
        )
        self.recorder.stage(f"Embedding {texts.num_rows:,} texts")
        started = time.perf_counter()
        self.recorder.working(vectors.rows, texts.num_rows, "rows")
        for piece in texts.pieces(PIECE_ROWS, vectors.rows):
            rows = self._tokenize(piece)
            done = vectors.rows

            def count(more: int) -> None:
                nonlocal done
                done += more
                self.recorder.working(done, texts.num_rows, "rows")

            made = embed(rows, count)
            vectors.append(normalize(made) if self.config.normalize else made)
        self.seconds = time.perf_counter() - started
        if self.empty:
            self.recorder.note(
                f"{self.empty:,} of the texts given are empty; they have the vector of no text."
            )
        if self.encoded.rows_cut:
            self.recorder.note(describe_cut({"given": self.encoded}, self.found.max_length))

    def _tokenize(self, texts: list[str]) -> TokenizedRows:
        self.empty += sum(not text.strip() for text in texts)
        prefixed = [self.config.prefix + text for text in texts] if self.config.prefix else texts
        rows, stats = self.found.tokenizer.encode(prefixed, max_length=self.found.max_length)
        self.encoded = Encoded(
            **{key: getattr(self.encoded, key) + getattr(stats, key) for key in Encoded.model_fields}
        )
        return rows

    def describe(
        self, encoder: EncoderResult, vectors: UnfinishedVectors, before: int, seconds: float
    ) -> EmbedResult:
        """What was done, in ``seconds`` in all."""
        config, made = self.config, vectors.rows - before
        return EmbedResult(
            **describe_run(
                "embed",
                config,
                seconds=seconds,
                output=config.output,
                seed=None,
                parent=describe_parent(config.model, self.found.folder),
                notes=self.recorder.notes,
            ),
            encoder=encoder,
            input=str(config.input),
            rows=vectors.rows,
            dimension=vectors.width,
            pooling=self.choice.pooling,
            layers=self.choice.layers,
            normalized=config.normalize,
            prefix=config.prefix,
            encoded=self.encoded,
            runtime=self.runtime,
            device=self.device,
            threads=self.threads,
            resumed_from_row=before if config.resume and before else None,
            rows_per_s=made / self.seconds if made and self.seconds else None,
            peak_memory_bytes=peak_memory_bytes(),
        )


def _choose_vectors(config: EmbedConfig, found: FoundEncoder, observer: Observer) -> Choice:
    """Layers and pooling. An exported classifier, of which no layer was named, has a usual layer of its own.

    Raises:
        ConfigError: there is no such layer, or its graph does not compute it.
    """
    choice = choose(config.layers, config.pooling, found.config.num_hidden_layers)
    if found.export is None:
        return choice
    nearest = choice if "layers" in config.model_fields_set else nearest_choice(choice, found.config)
    check_choice(nearest, found.config)
    if nearest != choice:
        observer.note(
            f"--layers {nearest.layers}: of its last layer, the usual choice, the graph of an exported "
            "classifier computes the first token only."
        )
    return nearest


def _choose_runtime(config: EmbedConfig, found: FoundEncoder) -> str:
    """What to compute in; an exported model runs as it is.

    Raises:
        ConfigError: another runtime was asked for.
    """
    if found.export is None:
        return config.runtime
    own = found.export.runtime
    if "runtime" in config.model_fields_set and config.runtime != own:
        raise ConfigError(
            f"--runtime {config.runtime}: {found.source} is exported and runs as it is, in {own}"
        )
    return own


def _choose_device(config: EmbedConfig, runtime: str) -> str:
    """Where to compute. A graph that is made on the spot runs on the CPU, unless a GPU is asked for.

    Raises:
        ConfigError: it cannot run there on this machine.
    """
    if not runs_a_graph(runtime):
        return choose_device(config.device, config.threads)
    device = "cpu" if config.device == "auto" else config.device
    if why := why_unavailable(runtime, device):
        raise ConfigError(f"--runtime {runtime} cannot run on {device}: {why}")
    return device


def _count_threads(config: EmbedConfig, runtime: str) -> int:
    """CPU threads to compute with."""
    if runs_a_graph(runtime):
        return default_threads(config.threads)
    import torch

    return torch.get_num_threads()


def _claim(output: OutputFolder, config: EmbedConfig, encoder: EncoderResult) -> None:
    """Make the folder for unfinished work; one that is there must be of the same texts and options."""
    assert config.input is not None
    this = {
        "model": encoder.sha256,
        "input": _hash_file(config.input),
        "max_length": encoder.max_length,
        **config.model_dump(mode="json", exclude={*FREE_TO_CHANGE, "max_length"}),
    }
    if config.resume:
        check_unchanged(output.work / STARTED_FILE, this, output.work)
    write_json(output.open() / STARTED_FILE, this)


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

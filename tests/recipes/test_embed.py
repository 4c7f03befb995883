"""Claims about texts as vectors in a file."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import recipes.embed
from encoder.checkpoint import load_encoder
from encoder.embedding import embed_rows, normalize
from encoder.errors import ConfigError, DataError
from encoder.model_folder import read_tokenizer
from encoder.vector_choice import choose
from recipes.embed import embed
from recipes.embed_comparison import all_choices, compare_choices
from recipes.embed_config import EmbedConfig
from recipes.export import export
from recipes.export_config import ExportConfig

WORDS = ("good", "bad", "film", "plot", "awful", "lovely", "a", "long")
TEXTS = [" ".join(WORDS[(i * j) % 8] for j in range(1, 2 + i % 7)) for i in range(40)]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


def expected(model, texts, layers="-1", pooling="mean"):
    encoder = load_encoder(model)
    rows, _ = read_tokenizer(model).encode(texts)
    (vectors,) = embed_rows(encoder, rows, [choose(layers, pooling, 3)])
    return normalize(vectors)


def test_file_holds_the_vectors_of_the_texts_in_their_order(tiny_model, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(recipes.embed, "PIECE_ROWS", 7)
    result = embed(EmbedConfig(model=str(tiny_model), input=texts, output=tmp_path / "v.npy"))
    found = np.load(tmp_path / "v.npy")
    assert found == pytest.approx(expected(tiny_model, TEXTS), abs=1e-5)
    assert (result.rows, result.dimension, result.encoded.rows) == (40, 32, 40)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.txt", "v.npy"]


def test_options_make_other_vectors_and_parquet_says_which(tiny_model, texts, tmp_path):
    output = tmp_path / "v.parquet"
    embed(
        EmbedConfig(
            model=str(tiny_model), input=texts, output=output, layers="-2:", pooling="max", prefix="the "
        )
    )
    table = pyarrow.parquet.read_table(output)
    vectors = np.array(table["embedding"].to_pylist(), dtype=np.float32)
    assert vectors == pytest.approx(
        expected(tiny_model, ["the " + text for text in TEXTS], "-2:", "max"), abs=1e-5
    )
    assert table["text"].to_pylist() == TEXTS
    about = json.loads(table.schema.metadata[b"enc"])
    assert (about["layers"], about["pooling"], about["prefix"]) == ("-2:", "max", "the ")


def test_onnx_vectors_are_those_of_torch(tiny_model, texts, tmp_path):
    options = {"model": str(tiny_model), "input": texts, "layers": "2", "pooling": "max"}
    result = embed(EmbedConfig(**options, output=tmp_path / "v.npy", runtime="onnx-fp32", threads=1))
    assert (result.runtime, result.threads) == ("onnx-fp32", 1)
    assert np.load(tmp_path / "v.npy") == pytest.approx(expected(tiny_model, TEXTS, "2", "max"), abs=1e-4)
    embed(EmbedConfig(**options, output=tmp_path / "int8.npy", runtime="onnx-int8", threads=1))
    cosines = (np.load(tmp_path / "v.npy") * np.load(tmp_path / "int8.npy")).sum(1)
    assert cosines.min() > 0.97


def test_unscaled_vectors_have_the_models_own_lengths(tiny_model, texts, tmp_path):
    embed(EmbedConfig(model=str(tiny_model), input=texts, output=tmp_path / "v.npy", normalize=False))
    found = np.load(tmp_path / "v.npy")
    assert np.linalg.norm(found, axis=1).std() > 0
    assert normalize(found) == pytest.approx(expected(tiny_model, TEXTS), abs=1e-5)


class StopError(Exception):
    pass


def interrupt(config, monkeypatch, *, after):
    """Run ``config``, to be killed once so many pieces are written."""
    append = recipes.embed.UnfinishedVectors.append
    pieces = 0

    def stopping(self, vectors):
        nonlocal pieces
        if pieces == after:
            raise StopError
        pieces += 1
        append(self, vectors)

    with monkeypatch.context() as patch:
        patch.setattr(recipes.embed.UnfinishedVectors, "append", stopping)
        with pytest.raises(StopError):
            embed(config)


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_interrupted_run_goes_on_and_ends_with_the_same_bytes(tiny_model, texts, tmp_path, monkeypatch, name):
    monkeypatch.setattr(recipes.embed, "PIECE_ROWS", 7)
    config = EmbedConfig(model=str(tiny_model), input=texts, output=tmp_path / name)
    embed(config.model_copy(update={"output": tmp_path / f"whole-{name}"}))
    interrupt(config, monkeypatch, after=3)
    assert not (tmp_path / name).exists()
    with pytest.raises(ConfigError, match=r"an interrupted run is in .*--resume continues it"):
        embed(config)
    result = embed(config.model_copy(update={"resume": True}))
    assert (result.resumed_from_row, result.rows, result.encoded.rows) == (21, 40, 19)
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()


def test_other_texts_or_options_do_not_go_on(tiny_model, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(recipes.embed, "PIECE_ROWS", 7)
    config = EmbedConfig(model=str(tiny_model), input=texts, output=tmp_path / "v.npy")
    interrupt(config, monkeypatch, after=1)
    texts.write_text("other\n")
    with pytest.raises(
        ConfigError, match=r"started with other options[\s\S]*input: [\s\S]*pooling: \"mean\""
    ):
        embed(config.model_copy(update={"resume": True, "pooling": "max"}))


def test_file_that_is_there_stays(tiny_model, texts, tmp_path):
    (tmp_path / "v.npy").write_text("mine")
    config = EmbedConfig(model=str(tiny_model), input=texts, output=tmp_path / "v.npy")
    with pytest.raises(ConfigError, match="the file exists; choose another name, or --overwrite"):
        embed(config)
    assert (tmp_path / "v.npy").read_text() == "mine"
    embed(config.model_copy(update={"overwrite": True}))
    assert np.load(tmp_path / "v.npy").shape == (40, 32)


def test_wrong_layer_is_refused_before_the_file_is_made(tiny_model, texts, tmp_path):
    with pytest.raises(ConfigError, match="--layers 4: no such layer"):
        embed(EmbedConfig(model=str(tiny_model), input=texts, output=tmp_path / "v.npy", layers="4"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.txt"]


@pytest.fixture
def pairs(tmp_path):
    """Pairs whose label is how many words they share."""
    folder = tmp_path / "pairs"
    folder.mkdir()
    draw = np.random.default_rng(0)
    for split in ("train", "validation", "test"):
        lines = ["text_a,text_b,label"]
        for _ in range(60):
            words = draw.permutation(WORDS[:8])
            shared = int(draw.integers(0, 4))
            first, second = words[:4], [*words[:shared], *words[4 : 8 - shared]]
            lines.append(f"{' '.join(first)},{' '.join(second)},{shared / 4}")
        (folder / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_comparison_chooses_on_validation_and_tells_of_test(tiny_model, pairs):
    result = compare_choices(EmbedConfig(model=str(tiny_model), compare=str(pairs)))
    assert {(one.layers, one.pooling) for one in result.choices} == {
        (layers, pooling)
        for layers in ("0", "1", "2", "3", "-2:", "1:")
        for pooling in ("mean", "cls", "max")
    }
    assert result.best.score == max(one.score for one in result.choices if one.score is not None)
    assert result.best.score >= result.usual.score
    assert result.best.score > 0.5
    assert (result.split, result.held_out_split, result.held_out_rows) == ("validation", "test", 60)
    by_name = {(one.layers, one.pooling): one.score for one in result.choices}
    assert by_name["0", "cls"] is None  # the same for every text
    assert f"--layers {result.best.layers} --pooling {result.best.pooling}" in result.verdict


def test_score_of_a_choice_is_spearmans_of_its_cosines(tiny_model, pairs):
    from scipy.stats import spearmanr

    result = compare_choices(EmbedConfig(model=str(tiny_model), compare=str(pairs / "test.csv")))
    assert (result.split, result.held_out_split) == ("test", None)
    rows = [line.split(",") for line in (pairs / "test.csv").read_text().splitlines()[1:]]
    first, second = (expected(tiny_model, [row[column] for row in rows], "2", "max") for column in (0, 1))
    wanted = spearmanr((first * second).sum(1), [float(row[2]) for row in rows]).statistic
    by_name = {(one.layers, one.pooling): one.score for one in result.choices}
    assert by_name["2", "max"] == pytest.approx(wanted, abs=1e-3)
    assert "No other split" in result.verdict


def test_every_layer_of_a_shallow_encoder_is_a_choice():
    assert [one.layers for one in all_choices(1)[::3]] == ["0", "1"]
    assert [one.layers for one in all_choices(12)[::3]] == [*map(str, range(13)), "-2:", "-4:", "1:"]


def test_single_texts_cannot_be_compared(tiny_model, reviews):
    with pytest.raises(DataError, match="pairs of texts"):
        compare_choices(EmbedConfig(model=str(tiny_model), compare=str(reviews)))


@pytest.fixture(scope="module")
def exported(finetuned, reviews, tmp_path_factory):
    """The folders of a fine-tuned model exported with these options, each made once."""
    made = {}

    def make(**options):
        key = str(options)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("exports") / "model"
            places = {"model": finetuned.output, "data": str(reviews), "output": made[key]}
            export(ExportConfig(**places, latency=False, **options))
        return str(made[key])

    return make


@pytest.mark.parametrize("graph", ["portable", "fused"])
@pytest.mark.parametrize(("layers", "pooling"), [("0", "max"), ("1", "mean"), ("-1", "cls"), ("0:2", "mean")])
def test_exported_graph_gives_the_vectors_of_the_model(
    exported, finetuned, texts, tmp_path, graph, layers, pooling
):
    options = {"output": tmp_path / "v.npy", "layers": layers, "pooling": pooling}
    result = embed(EmbedConfig(model=exported(graph=graph), input=texts, **options))
    wanted = expected(Path(finetuned.output), TEXTS, layers, pooling)
    assert np.load(tmp_path / "v.npy") == pytest.approx(wanted, abs=1e-4)
    assert result.runtime == "onnx-fp32"


def test_exported_graph_in_8_bits_gives_nearly_the_vectors_of_the_model(exported, finetuned, texts, tmp_path):
    model = exported(precision="int8", max_drop=100)
    embed(EmbedConfig(model=model, input=texts, output=tmp_path / "v.npy", layers="1"))
    cosines = (np.load(tmp_path / "v.npy") * expected(Path(finetuned.output), TEXTS, "1")).sum(1)
    assert cosines == pytest.approx(np.ones(len(TEXTS)), abs=0.03)


@pytest.mark.parametrize(("pooling", "layers"), [(None, "-2"), ("max", "-2"), ("cls", "-1")])
def test_where_no_layer_is_named_an_exported_graph_gives_the_last_that_it_computes(
    exported, finetuned, texts, tmp_path, pooling, layers
):
    options = {} if pooling is None else {"pooling": pooling}
    config = EmbedConfig(model=exported(graph="portable"), input=texts, output=tmp_path / "v.npy", **options)
    result = embed(config)
    wanted = expected(Path(finetuned.output), TEXTS, layers, pooling or "mean")
    assert np.load(tmp_path / "v.npy") == pytest.approx(wanted, abs=1e-4)
    assert (result.layers, result.pooling) == (layers, pooling or "mean")
    assert any("--layers -2: of its last layer" in note for note in result.notes) == (layers == "-2")


def test_what_an_exported_graph_does_not_compute_is_refused(exported, texts, tmp_path):
    model, output = exported(graph="portable"), tmp_path / "v.npy"
    for options in ({"layers": "-1"}, {"layers": "1:", "pooling": "cls"}):
        with pytest.raises(ConfigError, match=r"the first token in its last layer, 3\. Take --layers -2 "):
            embed(EmbedConfig(model=model, input=texts, output=output, **options))
    with pytest.raises(ConfigError, match="exported and runs as it is, in onnx-fp32"):
        embed(EmbedConfig(model=model, input=texts, output=output, layers="1", runtime="torch-bf16"))
    assert not output.exists()

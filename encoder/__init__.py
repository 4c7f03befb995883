"""What a transformer encoder is; how one is loaded, trained and judged.

The encoder: ``config`` (its shape, layer by layer), ``embeddings``, ``attention`` with ``blocks``,
``local_attention`` and ``rotary``, ``feedforward``, ``residual`` (what a sublayer reads of those before it),
``linear``, ``dropout``, put together in ``layer`` and ``model``; ``conversion`` gives a model another
residual; ``packing`` (tokens end to end instead of padding) and ``batches``. Its files: ``model_folder``
(found and looked at, without torch), ``checkpoint`` (weights), ``huggingface`` (all that is spelt as Hugging
Face spells it, a module a group of families), ``hub``, ``tokenizer`` with ``encoding``, ``tokenizer_folder``
and ``tokenizer_files``, ``files`` (written whole or not at all).

The data: ``data`` (``read_data``: a source → splits, task, report), on top of ``sources``, ``reading`` and
``delimited`` (files), ``columns``, ``cells``, ``labels`` and ``label_names``, ``splits``, ``data_report``;
``texts`` and ``text_stream`` (without labels, for prediction); ``task`` and ``rows`` (what training sees of
it all).

Training: ``training`` (the loop), ``training_config``, ``training_state`` (resuming), ``updates`` (one at a
time), ``optimizer``, ``losses``, ``objective``, ``freezing``, ``frozen_prefix`` and ``activations`` (what is
frozen is computed once), ``compact_vocabulary``; then ``prediction`` and ``metrics``; ``embedding`` (texts as
vectors: ``vector_choice`` says of which layers, ``pooling`` makes one of many, ``vector_file`` keeps them,
``probing`` asks what is in them).

Pretraining: ``corpus`` (texts from anywhere, in full rows), ``tokenizer_training``, ``masking`` (what is
hidden, an objective of training), ``language_model`` (who guesses it), ``processes`` (several that train one
model); ``depth`` shows what becomes of tokens on their way through the layers. What can go wrong is in
``errors``.
"""

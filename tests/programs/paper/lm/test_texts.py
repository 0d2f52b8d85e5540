"""Where texts and models come from, and what is said where they cannot be had."""

import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from boosters_eval.core.errors import BoostersEvalError, ConfigError
from boosters_eval.programs.paper import lm
from boosters_eval.programs.paper.lm import check, evaluate, find_missing
from boosters_eval.programs.paper.specification import PaperDataset, read_specification


def unchecked(name, use):
    """A data set with a path that no specification could hold: whoever opens it checks it again."""
    return PaperDataset(name=name).model_copy(update={"use": use})


HARBOUR = unchecked("harbour", __file__)


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the library `datasets` that says what it was asked for."""
    asked = []

    def load_dataset(path, config, *, split, streaming):
        asked.append((path, config, split, streaming))
        if isinstance(library.answer, Exception):
            raise library.answer
        return library.answer

    library = SimpleNamespace(answer=[], asked=asked, load_dataset=load_dataset, disable_progress_bars=lambda: None)
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return library


class TestHub:
    @pytest.mark.parametrize(
        ("name", "split", "asked"),
        [
            ("WikiText-103", "", ("Salesforce/wikitext", "wikitext-103-v1", "test", False)),
            ("wikitext-103-raw", "validation", ("Salesforce/wikitext", "wikitext-103-raw-v1", "validation", False)),
            ("PG-19", "test", ("emozilla/pg19", None, "test", False)),
            ("pg19", "", ("emozilla/pg19", None, "test", False)),
            ("C4", "", ("allenai/c4", "en", "validation", True)),
            ("IMDB", "train", ("stanfordnlp/imdb", None, "train", False)),
            ("SST-2", "", ("stanfordnlp/sst2", None, "validation", False)),
        ],
    )
    def test_data_sets_have_their_current_names(self, hub, name, split, asked):
        hub.answer = [
            {"text": "one", "sentence": "one"},
            {"text": " \n", "sentence": ""},
            {"text": "2", "sentence": "2"},
        ]
        assert list(lm.find_texts(PaperDataset(name=name, split=split)).documents()) == ["one", "2"]
        assert hub.asked == [asked]

    def test_a_limit_ends_a_stream(self, hub):
        hub.answer = ({"text": f"document {i}"} for i in iter(int, 1))
        assert len(list(lm.find_texts(PaperDataset(name="c4")).documents(3))) == 3

    def test_rows_keep_their_labels(self, hub):
        hub.answer = [{"text": "good", "label": 1}]
        assert list(lm.read_rows("imdb")) == [{"text": "good", "label": 1}]

    @pytest.mark.parametrize(
        "error", [ConnectionError("Couldn't reach\nthe Hub."), RuntimeError(""), ValueError("x" * 9999)]
    )
    def test_offline_it_says_how_to_get_the_data(self, hub, error):
        hub.answer = error
        with pytest.raises(BoostersEvalError) as told:
            list(lm.find_texts(PaperDataset(name="wikitext-103")).documents())
        sentence = str(told.value)
        assert sentence.startswith("Cannot load the data set 'wikitext-103' (Salesforce/wikitext on the hub): ")
        assert "load_dataset('Salesforce/wikitext', 'wikitext-103-v1', split='test')" in sentence
        assert len(sentence) < 600
        assert "\n" not in sentence

    def test_a_stream_must_have_an_end(self):
        with pytest.raises(ConfigError, match="say how much of it with 'max_documents'"):
            check("perplexity", PaperDataset(name="c4"), {})

    @pytest.mark.parametrize(
        ("dataset", "sentence"),
        [
            (PaperDataset(name="WikiText"), "Unknown text 'WikiText'. Did you mean 'wikitext-2'?"),
            (PaperDataset(name="x", use="nowhere.txt"), "Unknown text 'nowhere.txt'."),
            (PaperDataset(name="c4", split="test"), "must be one of train, validation. Got 'test' instead."),
        ],
    )
    def test_an_unknown_text_or_split_is_one_sentence(self, dataset, sentence):
        with pytest.raises(ConfigError) as told:
            lm.find_texts(dataset)
        assert sentence in str(told.value)


class TestReachability:
    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch):
        for name in ("HF_HUB_OFFLINE", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "")  # so that it is put back afterwards
            monkeypatch.delenv(name)

    def test_a_hub_out_of_reach_is_told_to_its_libraries(self, monkeypatch):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
            assert lm.prepare_hub() is False
        assert os.environ["HF_HUB_OFFLINE"] == "1"

    @pytest.mark.parametrize(
        ("name", "model", "dataset", "arguments", "asked"),
        [
            ("passkey", "gpt2", "x", {}, True),
            ("passkey", "local", "x", {}, False),
            ("passkey", "local", "x", {"tokenizer": "characters"}, False),
            ("passkey", "local", "x", {"tokenizer": "gpt2"}, True),
            ("perplexity", "local", "imdb", {}, True),
        ],
    )
    def test_it_is_looked_for_before_its_libraries_are_imported(
        self, monkeypatch, tmp_path, name, model, dataset, arguments, asked
    ):
        calls = []
        monkeypatch.setattr("boosters_eval.programs.paper.lm.find_spec", lambda name: object())
        monkeypatch.setattr("boosters_eval.programs.paper.lm.prepare_hub", lambda: calls.append(None))
        monkeypatch.setitem(sys.modules, "boosters_eval.programs.paper.lm.models", None)  # its import fails
        if model == "local":
            model = str(tmp_path)
            for file in ("config.json", "model.safetensors"):
                (tmp_path / file).touch()
        with pytest.raises(ImportError):
            evaluate(name, model, PaperDataset(name=dataset), arguments, 0)
        assert bool(calls) is asked

    def test_a_hub_in_reach_is_used(self, monkeypatch):
        with socket.create_server(("127.0.0.1", 0)) as server:
            monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
            assert lm.prepare_hub() is True
        assert "HF_HUB_OFFLINE" not in os.environ


class TestSources:
    @pytest.mark.parametrize(
        ("files", "asked", "sentence"),
        [
            ([], "/nowhere/model", "The model /nowhere/model does not exist."),
            ([], "./model", "does not exist"),
            ([], "model.gguf", "does not exist"),
            ([], "a/b/c", "does not exist"),
            ([], "org/..", "does not exist"),
            ([], "", "has no config.json"),
            (["config.json"], "", "has no weights"),
            (["config.json", "pytorch_model.bin"], "", "pytorch_model.bin are a pickle, which can run code"),
            (
                ["model.pt"],
                "model.pt",
                "a folder that transformers wrote, a .gguf file or a name on the hub. Got the file",
            ),
        ],
    )
    def test_what_is_no_model_is_one_sentence(self, tmp_path, monkeypatch, files, asked, sentence):
        monkeypatch.chdir(tmp_path)
        for name in files:
            (tmp_path / name).touch()
        with pytest.raises(ConfigError) as told:
            lm.check_source(asked or str(tmp_path))
        assert sentence in str(told.value)

    def test_a_name_a_folder_and_a_file_are_told_apart(self, tmp_path):
        for name in ("config.json", "model.safetensors", "model.gguf"):
            (tmp_path / name).touch()
        assert lm.check_source("HuggingFaceTB/SmolLM2-135M") is None
        assert lm.check_source("gpt2") is None
        assert lm.check_source(str(tmp_path)) == tmp_path
        assert lm.check_source(str(tmp_path / "model.gguf")) == tmp_path / "model.gguf"


class TestMissing:
    def test_a_missing_library_is_named_with_its_command(self, monkeypatch, tmp_path):
        monkeypatch.setattr("boosters_eval.programs.paper.lm.find_spec", lambda name: None)
        command = "pip install 'boosters-eval[lm]'"
        assert find_missing("passkey") == f"The evaluator 'passkey' needs torch and transformers: {command}"
        (tmp_path / "model.gguf").touch()
        assert "needs torch, transformers, accelerate and gguf: " in find_missing(
            "needle", str(tmp_path / "model.gguf")
        )
        with pytest.raises(BoostersEvalError, match="needs torch and transformers: pip install"):
            evaluate("perplexity", "gpt2", HARBOUR, {}, 0)

    def test_what_is_not_there_is_told_before_anything_is_imported(self, monkeypatch):
        monkeypatch.setattr("boosters_eval.programs.paper.lm.find_spec", lambda name: object())
        assert find_missing("perplexity", "gpt2", HARBOUR) is None
        assert find_missing("needle", "/nowhere") == "The model /nowhere does not exist."
        assert "Unknown text 'nothing'" in find_missing("perplexity", "gpt2", PaperDataset(name="nothing"))
        assert "Unknown evaluator 'perplexty'. Did you mean 'perplexity'?" in find_missing("perplexty")

    def test_nothing_large_is_imported(self):
        code = (
            "import sys; from boosters_eval.programs.paper.lm import find_missing; find_missing('perplexity', 'gpt2');"
            "from boosters_eval.programs.paper.lm import retrieval;"
            "assert not {'torch', 'transformers', 'datasets', 'huggingface_hub', 'gguf'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


class TestArguments:
    @pytest.mark.parametrize(
        ("name", "arguments", "sentence"),
        [
            ("perplexity", {"contextlength": 5}, "no parameter 'contextlength'. Did you mean 'context_length'?"),
            (
                "perplexity",
                {"unit": "line"},
                "'unit' parameter of PerplexityArguments must be 'token', 'word' or 'byte'",
            ),
            ("perplexity", {"stride": 0}, "'stride' parameter"),
            ("passkey", {"depths": [101]}, "must be less than or equal to 100"),
            ("passkey", {"lengths": []}, "'lengths' parameter"),
            ("passkey", {"dtype": "int3"}, "'dtype' parameter"),
            ("passkee", {}, "Unknown evaluator 'passkee'. Did you mean 'passkey'?"),
        ],
    )
    def test_a_wrong_argument_is_one_sentence(self, name, arguments, sentence):
        with pytest.raises(ConfigError) as told:
            check(name, HARBOUR if name == "perplexity" else PaperDataset(name="x"), arguments)
        assert sentence in str(told.value)

    def test_one_length_may_stand_alone(self):
        assert check("needle", PaperDataset(name="x"), {"lengths": 900, "depths": 50}).lengths == (900,)

    def test_the_haystack_may_be_a_file_but_not_that_of_a_pass_key(self, tmp_path):
        (tmp_path / "essay.txt").write_text(" \n")
        own = unchecked("essays", str(tmp_path / "essay.txt"))
        for name, sentence in [("needle", "is empty"), ("passkey", "'use' must be passkey-retrieval")]:
            with pytest.raises(ConfigError, match=sentence):
                check(name, own, {})

    def test_files_are_in_the_folder_of_the_specification(self, tmp_path):
        root = tmp_path / "paper"
        root.mkdir()
        (root / "text.txt").write_text("Text.")
        (tmp_path / "secret.txt").write_text("Secret.")
        (root / "link.txt").symlink_to(tmp_path / "secret.txt")
        source = lm.find_texts(PaperDataset(name="x", use="text.txt"), root)
        assert list(source.documents()) == ["Text."]
        for use in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt"):
            for name in ("perplexity", "needle"):
                with pytest.raises(ConfigError, match="leads out of the specification's folder"):
                    check(name, unchecked("x", use), {}, root)
        with pytest.raises(ConfigError, match="leads out of the specification's folder"):
            check("passkey", PaperDataset(name="x"), {"tokenizer": "../elsewhere"}, root)

    def test_arguments_come_from_a_specification(self, tmp_path):
        path = tmp_path / "paper.yaml"
        path.write_text(
            "paper: P\ntables:\n- id: T\n  models:\n  - name: M\n    run: {evaluator: passkey, model: gpt2,"
            " arguments: {lengths: [900, 1000], depths: [0, 50.5], trials: 2}}\n"
        )
        run = read_specification(path).tables[0].models[0].run
        found = check(run.evaluator, PaperDataset(name="passkey-retrieval"), run.arguments)
        assert (found.lengths, found.depths, found.trials) == ((900, 1000), (0.0, 50.5), 2)

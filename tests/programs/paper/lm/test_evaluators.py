"""The evaluators, on models small enough to be built here: one by hand, and random ones as transformers writes them."""

import json
import math
import warnings
from pathlib import Path

import pytest

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.programs.paper.lm import (
    ModelArguments,
    PerplexityArguments,
    RetrievalArguments,
    cut_windows,
    evaluate,
    find_texts,
    measure_perplexity,
    retrieve,
)
from boosters_eval.programs.paper.lm.retrieval import generate
from boosters_eval.programs.paper.specification import PaperDataset

INSTALL = "the extra lm is not installed: pip install 'boosters-eval[lm]'"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch", reason=INSTALL)
    transformers = pytest.importorskip("transformers", reason=INSTALL)
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    from boosters_eval.programs.paper.lm.models import LanguageModel, load

pytestmark = pytest.mark.filterwarnings("ignore")  # what a library warns of is its own affair
TEXT = Path(__file__).with_name("harbour.txt")


def byte_tokenizer():
    """One token per byte, after the two special ones."""
    alphabet = {piece: 2 + i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab={"<s>": 0, "</s>": 1, **alphabet}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", eos_token="</s>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=258,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=1024,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.5,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(place)
    byte_tokenizer().save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def llama(folder):
    return load(str(folder), ModelArguments())


class Scripted(torch.nn.Module):
    """The next token depends on the last one alone, by a table."""

    def __init__(self, probabilities):
        super().__init__()
        self.table = torch.tensor(probabilities).log()
        self.config = transformers.LlamaConfig(max_position_embeddings=64)
        self.device = torch.device("cpu")

    def forward(self, input_ids, attention_mask, use_cache):
        return transformers.modeling_outputs.CausalLMOutput(logits=self.table[input_ids])


class TestPerplexity:
    def test_a_model_by_hand(self):
        table = [[0.25, 0.5, 0.25], [0.125, 0.125, 0.75], [0.0625, 0.4375, 0.5]]
        model = LanguageModel(Scripted(table), byte_tokenizer())
        by_hand = -sum(map(math.log, [0.5, 0.75, 0.0625, 0.25, 0.5]))  # 0→1→2→0→0→1
        for context, stride in [(8, 8), (2, 1), (2, 2), (1, 1), (3, 2)]:
            assert model.nats(cut_windows([1, 2, 0, 0, 1], 0, context, stride), 2) == pytest.approx(by_hand)

    def test_one_window_is_what_the_model_itself_says(self, llama):
        tokens = llama.encode(TEXT.read_text()[:300])
        inputs = torch.tensor([[0, *tokens]])
        with torch.no_grad():
            loss = float(llama.model(inputs, labels=inputs).loss)
        assert llama.nats(cut_windows(tokens, 0, 1000, 1000), 1) / len(tokens) == pytest.approx(loss, rel=1e-6)

    def test_the_batch_size_does_not_matter(self, llama, tmp_path):
        for i, size in enumerate((500, 37, 210)):
            (tmp_path / f"{i}.txt").write_text(TEXT.read_text()[:size])
        source = find_texts(PaperDataset(name="texts", use=tmp_path.name), tmp_path.parent)
        values = [
            measure_perplexity(llama, source, PerplexityArguments(context_length=64, stride=20, batch_size=size))
            for size in (1, 2, 5, 64)
        ]
        assert values[0]["tokens"] == values[0]["bytes"] == 747
        assert values[0]["documents"] == 3
        for value in values[1:]:
            assert value == pytest.approx(values[0], rel=1e-6)

    def test_more_context_changes_the_value_and_not_what_is_counted(self, folder):
        dataset = PaperDataset(name="harbour", use=TEXT.name)
        one, two = (
            evaluate("perplexity", str(folder), dataset, {"context_length": 32, **more}, seed, root=TEXT.parent)
            for seed, more in enumerate(({}, {"stride": 1, "batch_size": 64}))
        )
        assert one["tokens"] == two["tokens"] == one["bytes"] == len(TEXT.read_bytes())
        assert one["words"] == len(TEXT.read_text().split())
        assert one["perplexity"] != two["perplexity"]
        assert one["byte_perplexity"] == pytest.approx(2 ** one["bits_per_byte"])

    def test_documents_may_be_joined(self, llama, tmp_path):
        (tmp_path / "a.txt").write_text("One.")
        (tmp_path / "b.txt").write_text("Two.")
        source = find_texts(PaperDataset(name="texts", use=tmp_path.name), tmp_path.parent)
        assert measure_perplexity(llama, source, PerplexityArguments(joined=True))["bytes"] == 10
        assert measure_perplexity(llama, source, PerplexityArguments())["bytes"] == 8
        assert measure_perplexity(llama, source, PerplexityArguments(max_documents=1))["bytes"] == 4

    def test_a_context_beyond_the_model_is_refused_unless_asked_for(self, folder, llama):
        source = find_texts(PaperDataset(name="harbour", use=TEXT.name), TEXT.parent)
        with pytest.raises(BoostersEvalError, match="'context_length' must be at most the model's 1024 positions"):
            measure_perplexity(llama, source, PerplexityArguments(context_length=1025))
        wider = load(str(folder), ModelArguments(extrapolate=True))
        assert measure_perplexity(wider, source, PerplexityArguments(context_length=1025))["perplexity"] > 1


class Oracle(LanguageModel):
    """Answers as told, and keeps the prompts."""

    def __init__(self, right):
        super().__init__(Scripted([[1.0]]), byte_tokenizer())
        self.right, self.prompts, self.extrapolate = right, [], True

    def answer(self, prompt, max_new_tokens):
        self.prompts.append((prompt, max_new_tokens))
        return self.right(prompt)


class TestRetrieval:
    @pytest.mark.parametrize(("kind", "room"), [("passkey", 10), ("needle", 128)])
    def test_the_prompt_and_its_answer_fill_the_length(self, kind, room):
        model = Oracle(lambda _prompt: "")
        values = retrieve(kind, model, RetrievalArguments(lengths=(600, 700), trials=2), 0)
        assert [model.count(prompt) + new for prompt, new in model.prompts] == [600, 600, 700, 700]
        assert {new for _, new in model.prompts} == {room}
        assert values == {"accuracy": 0, "accuracy_600": 0, "accuracy_700": 0, "prompts": 4}

    def test_accuracy_is_by_length_and_depth(self):
        expected = {p.text: p.answer for p in generate("passkey", 590, seed=5, depths=[0, 50], trials=3)}
        model = Oracle(lambda prompt: expected[prompt] if prompt.find("The pass key is") < 200 else "1 is it")
        values = retrieve("passkey", model, RetrievalArguments(lengths=600, depths=(0, 50), trials=3), 5)
        assert values == {
            "accuracy": 0.5,
            "accuracy_600": 0.5,
            "accuracy_depth_0": 1.0,
            "accuracy_600_depth_0": 1.0,
            "accuracy_depth_50": 0.0,
            "accuracy_600_depth_50": 0.0,
            "prompts": 6.0,
        }

    def test_lengths_may_be_counted_in_characters_or_by_another_tokenizer(self, folder):
        model = Oracle(lambda _prompt: "")
        retrieve("passkey", model, RetrievalArguments(lengths=500, tokenizer="characters", trials=1), 0)
        retrieve("passkey", model, RetrievalArguments(lengths=500, tokenizer=str(folder), trials=1), 0)
        assert [len(prompt) for prompt, _ in model.prompts] == [500, 490]

    def test_a_model_answers_greedily_and_the_same_every_time(self, folder, llama):
        given = torch.tensor([llama.tokenizer("Say")["input_ids"]])
        for _ in range(6):
            with torch.no_grad():
                given = torch.cat([given, llama.model(given).logits[:, -1:].argmax(-1)], dim=1)
        likeliest = llama.tokenizer.decode(given[0, 3:], skip_special_tokens=True)
        assert llama.answer("Say", 6) == likeliest
        first, second = (
            evaluate("passkey", str(folder), PaperDataset(name="p"), {"lengths": [400], "trials": 2}, 0) for _ in "ab"
        )
        assert first == second

    def test_the_models_own_sampling_settings_are_not_used(self, folder, tmp_path):
        for file in folder.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        settings = {"do_sample": True, "temperature": 9.0, "repetition_penalty": 5.0, "max_length": 5}
        (tmp_path / "generation_config.json").write_text(json.dumps(settings))
        plain, penalized = (load(str(place), ModelArguments()) for place in (folder, tmp_path))
        assert [penalized.answer("Say it again, again", 20) for _ in "ab"] == [
            plain.answer("Say it again, again", 20)
        ] * 2


class TestLoading:
    def test_pickled_weights_are_refused_unless_allowed(self, folder, tmp_path):
        for file in folder.iterdir():
            if file.suffix != ".safetensors":
                (tmp_path / file.name).write_bytes(file.read_bytes())
        with pytest.raises(BoostersEvalError, match="has no weights"):
            load(str(tmp_path), ModelArguments())
        weights = load(str(folder), ModelArguments()).model.state_dict()
        torch.save(weights, tmp_path / "pytorch_model.bin")
        with pytest.raises(BoostersEvalError, match="are a pickle, which can run code"):
            load(str(tmp_path), ModelArguments())
        loaded = load(str(tmp_path), ModelArguments(), allow_pickle=True).model.state_dict()
        assert all(torch.equal(loaded[name], value) for name, value in weights.items())

    def test_code_of_the_models_own_is_not_run(self, folder, tmp_path):
        for file in folder.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        ran = tmp_path / "ran"
        (tmp_path / "evil.py").write_text(f"open({str(ran)!r}, 'w')\nclass Evil: ...\n")
        config = json.loads((tmp_path / "config.json").read_text())
        config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(BoostersEvalError, match="Cannot load the model"):
            load(str(tmp_path), ModelArguments())
        assert not ran.exists()

    def test_damaged_weights_and_unknown_devices_are_one_sentence(self, folder, tmp_path):
        for file in folder.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes()[: 1000 if file.suffix == ".safetensors" else None])
        with pytest.raises(BoostersEvalError, match="Cannot load the model"):
            load(str(tmp_path), ModelArguments())
        with pytest.raises(BoostersEvalError, match="The device 'abacus' cannot be used"):
            load(str(folder), ModelArguments(device="abacus"))

"""Language models small enough to be built in a test."""

import pytest

torch = pytest.importorskip("torch", reason="the extra lm is not installed: pip install 'boosters-eval[lm]'")
transformers = pytest.importorskip("transformers", reason="the extra lm is not installed")


def tokenizer(*, bos=True):
    """One token per byte, after two special ones."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = {piece: 2 + i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab={"<s>": 0, "</s>": 1, **alphabet}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = {"bos_token": "<s>", "eos_token": "</s>"} if bos else {}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, **special)


def llama(folder, positions=1024, **options):
    """A folder with a random model of two layers, as transformers writes it."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=258,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=positions,
        bos_token_id=0,
        eos_token_id=1,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder, **options)
    tokenizer().save_pretrained(folder)
    return folder


class Scripted(torch.nn.Module):
    """Predicts by a table: the probability of each next token depends on the last one alone. Computed by hand."""

    def __init__(self, logits):
        super().__init__()
        self.table = logits
        self.config = transformers.LlamaConfig(max_position_embeddings=64)
        self.device = logits.device
        self.seen = []

    def forward(self, input_ids, attention_mask, use_cache):
        assert attention_mask.all()
        self.seen.append(tuple(input_ids.shape))
        return transformers.modeling_outputs.CausalLMOutput(logits=self.table[input_ids])

"""A network in PyTorch on the rows that the library beside it has: `boosters-eval paper run` calls `evaluate`."""

import torch
from torch import nn

from boosters_eval.paper import split


def evaluate(seed, width=64, epochs=60, patience=8):
    """Train on the training rows, stop on the validation rows, and be scored on the test rows of this seed."""
    rows = split()
    torch.manual_seed(seed)
    mean, spread = rows.y_train.mean(), rows.y_train.std()
    x, y = _tensor(rows.x_train), _tensor((rows.y_train - mean) / spread)
    x_valid, y_valid = _tensor(rows.x_valid), _tensor((rows.y_valid - mean) / spread)
    center, scale = x.mean(0), x.std(0).clamp_min(1e-6)
    network = nn.Sequential(
        nn.Linear(x.shape[1], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    )

    def predict(values):
        return network((values - center) / scale).squeeze(1)

    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-4)
    best, waited, kept = float("inf"), 0, network.state_dict()
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            nn.functional.mse_loss(predict(x[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            loss = float(nn.functional.mse_loss(predict(x_valid), y_valid))
        waited = 0 if loss < best else waited + 1
        if loss < best:
            best, kept = loss, {name: value.clone() for name, value in network.state_dict().items()}
        if waited == patience:
            break
    network.load_state_dict(kept)
    with torch.no_grad():
        return rows.score(predict(_tensor(rows.x_test)).numpy() * spread + mean)


def _tensor(values):
    return torch.as_tensor(values, dtype=torch.float32)

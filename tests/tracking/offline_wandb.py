"""The file of an offline run of W&B, read back: records in blocks of 32 KB, as LevelDB writes its log."""

import json
import struct

BLOCK, HEADER, FILE_HEADER = 32768, 7, 7
WHOLE, FIRST, LAST = 1, 2, 4


def records(path):
    from wandb.proto.wandb_internal_pb2 import Record

    data = path.read_bytes()
    assert data[:4] == b":W&B"
    position, parts = FILE_HEADER, b""
    while position + HEADER <= len(data):
        if BLOCK - position % BLOCK < HEADER:  # a header does not span two blocks
            position += BLOCK - position % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + HEADER])
        part = data[position + HEADER : position + HEADER + length]
        position += HEADER + length
        parts = part if kind in (WHOLE, FIRST) else parts + part
        if kind in (WHOLE, LAST):
            yield Record.FromString(parts)


def _pairs(items):
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


class OfflineRun:
    """What W&B would send of a run."""

    def __init__(self, path):
        self.config, self.summary, self.rows, self.files, self.exit_code, self.kinds = {}, {}, [], [], None, set()
        for record in records(path):
            kind = record.WhichOneof("record_type")
            self.kinds.add(kind)
            if kind == "run":
                run = record.run
                self.id, self.name, self.group, self.job_type = (
                    run.run_id,
                    run.display_name,
                    run.run_group,
                    run.job_type,
                )
                self.host, self.git = run.host, run.git.commit
                self.config |= _pairs(run.config.update)
            elif kind == "config":
                self.config |= _pairs(record.config.update)
            elif kind == "summary":
                self.summary |= _pairs(record.summary.update)
            elif kind == "history":
                self.rows.append(_pairs(record.history.item))
            elif kind == "artifact":
                self.files += [entry.path for entry in record.artifact.manifest.contents]
            elif kind == "exit":
                self.exit_code = record.exit.exit_code


def offline_runs(folder):
    """All of them, by the folder's name: one that was continued has several."""
    return {path.parent.name: OfflineRun(path) for path in sorted(folder.glob("wandb/offline-run-*/*.wandb"))}

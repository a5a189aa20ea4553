"""NAS-Bench-101 and what it is written in: files built here, none is an original."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from converters.importers import BenchmarkFileError, read_benchmark
from converters.importers.protobuf import read_fields
from converters.importers.tfrecord import crc32c, mask, read_records
from tests.converters.importers.scenes import model_metrics, nasbench101_record, write_tfrecord

KEY, ADJACENCY, OPERATIONS = "a" * 32, "010001000", "input,conv3x3-bn-relu,output"
PARAMS = 8_555_530


def run(epochs: int, test: float, key: str = KEY) -> bytes:
    metrics = model_metrics(PARAMS, (1000 * test, 1.0, test + 0.01, test))
    return nasbench101_record(key, epochs, ADJACENCY, OPERATIONS, metrics)


def test_checksum_of_the_standard() -> None:
    found = crc32c([b"123456789", b"", bytes(32), b"\xff" * 32, bytes(range(32))])
    assert [hex(value) for value in found] == ["0xe3069283", "0x0", "0x8a9136aa", "0x62a8ab43", "0x46dd794e"]


def test_checksums_at_once_are_those_one_by_one() -> None:
    rng = np.random.default_rng(0)
    records = [rng.bytes(int(size)) for size in rng.integers(0, 40, 50)]
    assert crc32c(records).tolist() == [int(crc32c([record])[0]) for record in records]


def test_messages_are_those_of_the_protobuf_library() -> None:
    """The schema of model_metrics.proto, by its own library."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="nasbench", syntax="proto2")
    for name, fields in {
        "EvaluationData": [
            ("epoch", 1, 1),
            ("time", 2, 1),
            ("train", 3, 1),
            ("valid", 4, 1),
            ("test", 5, 1),
            ("path", 6, 9),
        ],
        "ModelMetrics": [("evaluation_data", 1, 11), ("trainable_parameters", 2, 5), ("total_time", 3, 1)],
    }.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            added = message.field.add(name=field, number=number, type=kind, label=3 if kind == 11 else 1)
            if kind == 11:
                added.type_name = ".nasbench.EvaluationData"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("nasbench.ModelMetrics"))
    parsed = kind.FromString(model_metrics(PARAMS, (5.0, 0.9, 0.8, 0.7)))
    assert (parsed.trainable_parameters, len(parsed.evaluation_data), parsed.total_time) == (PARAMS, 3, 99.0)
    assert (parsed.evaluation_data[2].time, parsed.evaluation_data[2].test) == (5.0, 0.7)
    fields = dict(read_fields(parsed.SerializeToString()))
    assert (fields[2], fields[3]) == (PARAMS, 99.0)
    assert dict(read_fields(fields[1]))[5] == 0.7  # type: ignore[arg-type]


@pytest.mark.parametrize("size", range(1, 12))
def test_a_message_cut_short(size: int) -> None:
    message = b"\x12\x02ab\x19" + struct.pack("<d", 1.0)
    if size == 4:
        assert list(read_fields(message[:size])) == [(2, b"ab")]
    else:
        with pytest.raises(ValueError, match=rf"{size} bytes that are not a complete message"):
            list(read_fields(message[:size]))


def test_table(tmp_path: Path) -> None:
    runs = [
        run(epochs, test) for epochs, test in ((4, 0.1), (12, 0.5), (108, 0.9), (36, 0.2), (108, 0.93), (108, 0.96))
    ]
    write_tfrecord(tmp_path / "a.tfrecord", [*runs, run(108, 0.8, "b" * 32)])
    frame = read_benchmark("nasbench101", tmp_path / "a.tfrecord")
    assert frame["architecture"][0] == (
        '{"adjacency": "010001000", "operations": ["input", "conv3x3-bn-relu", "output"]}'
    )
    assert frame["module_hash"].tolist() == [KEY, "b" * 32]
    assert frame["space"].tolist() == ["nasbench101"] * 2
    labels = {
        "params": PARAMS,
        "accuracy@cifar10": 93.0,
        "valid_accuracy@cifar10": 91.0,
        "valid_accuracy_mean@cifar10": 94.0,
        "valid_accuracy_12ep@cifar10": 51.0,
        "train_time_s@tpuv2": 900.0,
    }
    assert frame.iloc[0][list(labels)].to_dict() == pytest.approx(labels)
    assert math.isnan(frame["valid_accuracy_12ep@cifar10"][1])


def test_108_epochs_alone(tmp_path: Path) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [run(108, 0.9)])
    assert "valid_accuracy_12ep@cifar10" not in read_benchmark("nasbench101", tmp_path / "a.tfrecord")


def test_more_records_than_are_checked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("converters.importers.tfrecord.BATCH", 2)
    records = [b"a", b"", b"bcd", b"ef", b"g"]
    write_tfrecord(tmp_path / "a.tfrecord", records)
    assert list(read_records(tmp_path / "a.tfrecord")) == records


@pytest.mark.parametrize(("offset", "record", "match"), [(2, 1, "length"), (20, 1, "data"), (-2, 2, "data")])
def test_a_flipped_bit_names_its_record(tmp_path: Path, offset: int, record: int, match: str) -> None:
    records = [run(108, 0.9)] * 3
    write_tfrecord(tmp_path / "a.tfrecord", records)
    data = bytearray((tmp_path / "a.tfrecord").read_bytes())
    start = len(data) // 3
    data[(start + offset) if offset > 0 else offset] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    with pytest.raises(BenchmarkFileError, match=rf"record {record}: expected (a )?{match} with its checksum"):
        read_benchmark("nasbench101", tmp_path / "a.tfrecord")


@pytest.mark.parametrize("missing", [1, 5, 100])
def test_truncated(tmp_path: Path, missing: int) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [run(108, 0.9)] * 2)
    data = (tmp_path / "a.tfrecord").read_bytes()
    (tmp_path / "a.tfrecord").write_bytes(data[:-missing])
    with pytest.raises(BenchmarkFileError, match=r"record 1: expected \d+ more bytes, got \d+\. The file is truncated"):
        read_benchmark("nasbench101", tmp_path / "a.tfrecord")


@pytest.mark.parametrize("length", [1 << 17, 1 << 40, (1 << 64) - 1])
def test_records_of_any_length_are_not_read(tmp_path: Path, length: int) -> None:
    header = struct.pack("<Q", length)
    (tmp_path / "a.tfrecord").write_bytes(header + struct.pack("<I", mask(crc32c([header]))[0]))
    with pytest.raises(BenchmarkFileError, match=rf"record 0: expected at most 65,536 bytes, got {length:,}\. Is it"):
        read_benchmark("nasbench101", tmp_path / "a.tfrecord")


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (b"no json", "record 0: expected a run of NAS-Bench-101, got JSONDecodeError"),
        (b"[1, 2]", "record 0: expected a run"),
        (nasbench101_record(KEY, 108, ADJACENCY, OPERATIONS, model_metrics(1, (1, 1, 1, 1), 2)), "2 evaluations"),
        (nasbench101_record(KEY, 108, "01", OPERATIONS, model_metrics(1, (1, 1, 1, 1))), "expected 9 digits"),
        (nasbench101_record(KEY, 36, ADJACENCY, OPERATIONS, b""), "at least one architecture, got none"),
    ],
)
def test_another_kind_of_file(tmp_path: Path, record: bytes, match: str) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [record])
    with pytest.raises(BenchmarkFileError, match=match):
        read_benchmark("nasbench101", tmp_path / "a.tfrecord")

# SPDX-License-Identifier: Apache-2.0
"""All tables, and the public names that have none."""

import importlib

_AREAS = ("devices", "meshes", "placement", "arrays", "lax", "layouts", "trees", "xla", "planner", "managers", "checkpoints", "processes", "jax_names")
AREAS = {area: importlib.import_module(f"bad_input.{area}").CALLS for area in _AREAS}

_RECORD = "a record that the library makes and hands out; the functions that make it check what goes in"
_KEY = "an entry of a tree's path: any value is one"

# Public names without a table, and why.
EXEMPT = {
    **dict.fromkeys(
        [
            "AcceleratorReport",
            "BatchSizeMeasurement",
            "BatchSizeRecommendation",
            "DeviceCapabilities",
            "FoundAccelerator",
            "HostCopy",
            "MemoryReport",
            "NvLink",
            "checkpoint.ArrayMetadata",
            "checkpoint.CheckpointMetadata",
            "checkpoint.PartMetadata",
            "checkpoint.SaveFuture",
            "calibration.Calibration",
            "calibration.CalibrationCheck",
            "calibration.CalibrationConditions",
            "calibration.CheckedRow",
            "calibration.Link",
            "calibration.ProcessLink",
            "calibration.Sample",
            "memory.ArrayRecord",
            "transfers.LineTransfers",
            "transfers.RouteTransfers",
            "transfers.TransferReport",
            "mesh_utils.AxisExplanation",
            "mesh_utils.MeshExplanation",
            "planner.Algorithm",
            "planner.CollectiveBound",
            "planner.CollectivePlan",
            "planner.Copy",
            "planner.Estimate",
            "planner.LowerBound",
            "planner.PlanStep",
            "planner.ReshardPlan",
            "planner.SearchSpace",
            "planner.StepCollective",
            "planner.StepMemory",
            "planner.StepPlan",
            "planner.StepProduct",
            "planner.StepRegime",
            "planner.StepSeconds",
            "models.ShapeParameters",
            "planner.InferencePlan",
            "planner.InferenceSeconds",
            "planner.TrainingChoice",
            "planner.TrainingPlan",
            "planner.TrainingSeconds",
            "planner.TrainingSpace",
            "planner.TrainingStage",
            "planner.TrainingSuggestions",
            "planner.Suggestion",
            "planner.Suggestions",
            "roofline.Accelerator",
            "roofline.Conditions",
            "roofline.Links",
            "roofline.MeasuredRoofline",
            "roofline.Provenance",
            "roofline.Rate",
            "roofline.Roofline",
            "roofline.Source",
        ],
        _RECORD,
    ),
    **dict.fromkeys(["tree_util.DictKey", "tree_util.FlattenedIndexKey", "tree_util.GetAttrKey", "tree_util.SequenceKey"], _KEY),
    "DeviceDetector": "a protocol: it is not made",
    "layout.AutoLayout": "a class without arguments",
    "xla_client.GpuAllocatorConfig.Kind": "an IntEnum: its call is Python's",
}

# SPDX-License-Identifier: Apache-2.0
"""Bad calls: audits of shardings and programs. Files that are refused are in tests/python/audit."""

from bad_input.rows import Calls, bad

_STEP = "audit = ad.audit; step = audit.Program('HLO text', 'step', 4, None, True, (('data', 4),), ())"
_TREE = "audit = ad.audit; tree = {'w': (ad.P('data'), (8, 4))}"

CALLS = [
    Calls(
        "audit.shardings",
        "audit.shardings(tree, mesh={'data': 4})",
        [
            bad("audit.shardings(5)", TypeError, "audit.shardings:", "tree is 5", "expected a tree of arrays or shardings"),
            bad("audit.shardings({'lr': 0.1})", TypeError, "audit.shardings:", "tree is {'lr': 0.1}"),
            bad("audit.shardings(None)", TypeError, "audit.shardings:", "tree is None"),
            bad("audit.shardings('none.json')", FileNotFoundError, "'none.json' cannot be read", "expected a JSON file"),
            bad("audit.shardings(tree, mesh=4)", TypeError, "audit.shardings:", "mesh is 4"),
            bad("audit.shardings(tree, mesh={'date': 4})", ValueError, "has the axis 'data' (did you mean date?)"),
            bad("audit.shardings(tree, {'v': (8, 4)})", ValueError, "audit.shardings:", "shapes has no shape at"),
            bad("audit.shardings(tree, at_least='much')", ValueError, "audit.shardings:", "at_least is 'much'"),
            bad("audit.shardings(tree, at_least=1.5)", TypeError, "audit.shardings:", "at_least is 1.5"),
        ],
        where=_TREE,
    ),
    Calls(
        "audit.Shardings.from_json",
        "audit.Shardings.from_json(audit.shardings(tree).to_json())",
        [
            bad("audit.Shardings.from_json('{')", ValueError, "Shardings.from_json:", "text is not JSON"),
            bad("audit.Shardings.from_json('[1]')", ValueError, "Shardings.from_json:", "a list in place of an object"),
            bad("audit.Shardings.from_json(b'{}')", TypeError, "Shardings.from_json:", "text is b'{}'"),
        ],
        where=_TREE,
    ),
    Calls(
        "audit.ProgramSummary.from_json",
        "audit.ProgramSummary.from_json(audit.ProgramSummary((), ()).to_json())",
        [
            bad("audit.ProgramSummary.from_json('{')", ValueError, "ProgramSummary.from_json:", "text is not JSON"),
            bad("audit.ProgramSummary.from_json('{}')", ValueError, "ProgramSummary.from_json:", "it has no 'format'"),
            bad("audit.ProgramSummary.from_json('[' * 100000)", ValueError, "nested too deep"),
            bad("audit.ProgramSummary.from_json(None)", TypeError, "ProgramSummary.from_json:", "text is None"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.diff",
        "audit.diff(tree, tree)",
        [
            bad("audit.diff(tree, 5)", TypeError, "audit.shardings:", "tree is 5"),
            bad("audit.diff('none.json', tree)", FileNotFoundError, "audit.diff:", "'none.json' cannot be read"),
            bad("audit.diff(tree, audit.ProgramSummary((), ()))", TypeError, "audit.diff:", "expected two of the same kind"),
            bad("audit.diff(tree, tree, mesh=3)", TypeError, "mesh is 3"),
        ],
        where=_TREE,
    ),
    Calls(
        "audit.save",
        "audit.save(tree, '/dev/null')",
        [
            bad("audit.save(tree, 5)", TypeError, "audit.save:", "path is 5"),
            bad("audit.save(tree, '/none/w.json')", FileNotFoundError, "audit.save:", "'/none/w.json' cannot be written"),
            bad("audit.save(tree, '/dev')", IsADirectoryError, "audit.save:", "'/dev' cannot be written"),
            bad("audit.save(5, '/dev/null')", TypeError, "tree is 5"),
        ],
        where=_TREE,
    ),
    Calls(
        "audit.load",
        "audit.shardings(tree)",
        [
            bad("audit.load(5)", TypeError, "audit.load:", "path is 5"),
            bad("audit.load('none.json')", FileNotFoundError, "audit.load:", "'none.json' cannot be read"),
            bad("audit.load('/dev/null')", ValueError, "audit.load:", "'/dev/null' is not a regular file"),
        ],
        where=_TREE,
    ),
    Calls(
        "audit.at_most",
        "audit.at_most(2)",
        [
            bad("audit.at_most(-1)", ValueError, "audit.at_most:", "limit is -1"),
            bad("audit.at_most(2.0)", TypeError, "audit.at_most:", "limit is 2.0"),
            bad("audit.at_most(None)", TypeError, "audit.at_most:", "limit is None"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.assert_collectives",
        "audit.assert_collectives(step, all_gather=0)",
        [
            bad("audit.assert_collectives(step)", TypeError, "audit.assert_collectives:", "no kind is given"),
            bad("audit.assert_collectives(step, all_gathr=0)", TypeError, "'all_gathr' is not a kind", "did you mean all_gather?"),
            bad("audit.assert_collectives(step, all_gather=-1)", ValueError, "all_gather is -1"),
            bad("audit.assert_collectives(step, all_gather='2')", TypeError, "all_gather is '2'"),
            bad("audit.assert_collectives(step, runs=1, all_gather=2)", TypeError, "runs is 1"),
            bad("audit.assert_collectives(None, all_gather=2)", TypeError, "audit.assert_collectives:", "program is None"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.assert_no_rematerialization",
        "audit.assert_no_rematerialization(step)",
        [
            bad("audit.assert_no_rematerialization(3)", TypeError, "audit.assert_no_rematerialization:", "program is 3"),
            bad("audit.assert_no_rematerialization(step, at_least=-1)", ValueError, "at_least is -1"),
            bad("audit.assert_no_rematerialization(step, at_least='all')", ValueError, "at_least is 'all'"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.assert_bytes",
        "audit.assert_bytes(step, at_most='40 MB')",
        [
            bad("audit.assert_bytes(None, at_most=4)", TypeError, "audit.assert_bytes:", "program is None"),
            bad("audit.assert_bytes(step, at_most='few')", ValueError, "audit.assert_bytes:", "at_most is 'few'"),
            bad("audit.assert_bytes(step, at_most=1.5)", TypeError, "audit.assert_bytes:", "at_most is 1.5"),
            bad("audit.assert_bytes(step, at_most=1, axis='date')", ValueError, "no axis 'date' (did you mean data?)"),
            bad("audit.assert_bytes(step, at_most=1, kind='gather')", ValueError, "'gather' is not a kind of collectives"),
            bad("audit.assert_bytes(step, at_most=1, axis=0)", TypeError, "axis is 0"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.assert_matches",
        "audit.save(tree, '/dev/null')",
        [
            bad("audit.assert_matches(tree, 5)", TypeError, "audit.assert_matches:", "path is 5"),
            bad("audit.assert_matches(5, 'w.json')", TypeError, "tree is 5"),
            bad("audit.assert_matches(tree, '/dev/null')", ValueError, "'/dev/null' is not a regular file"),
        ],
        where=_TREE,
    ),
    Calls(
        "audit.program",
        "audit.program('module @step {\\n}\\n', mesh={'data': 4})",
        [
            bad("audit.program(5)", TypeError, "audit.program:", "x is 5", "expected HLO or StableHLO text"),
            bad("audit.program('')", ValueError, "audit.program:", "the text is empty"),
            bad("audit.program('int main() {\\n}')", ValueError, "the text is neither HLO nor StableHLO", "expected a first line"),
            bad("audit.program(' \\n')", ValueError, "audit.program:", "the text is empty"),
            bad("audit.program('none.hlo')", FileNotFoundError, "audit.program:", "'none.hlo' cannot be read"),
            bad("audit.program('/dev/null')", ValueError, "is not a regular file"),
            bad("audit.program({'matmul': 1})", ValueError, "the counts have the key 'matmul'"),
            bad("audit.program({'all_reduce': -1})", ValueError, "the count of all_reduce is -1"),
            bad("audit.program('module @m {\\n}\\n', mesh=4)", TypeError, "audit.program:", "mesh is 4"),
            bad("audit.program('module @m {\\n}\\n', mesh={'data': 0})", ValueError, "size of mesh axis 'data' is 0"),
            bad("audit.program('module @m {\\n}\\n', mesh={})", ValueError, "mesh has 0 axes"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.Program.findings",
        "step.findings()",
        [
            bad("step.findings(-1)", ValueError, "Program.findings:", "at_least is -1"),
            bad("step.findings('big')", ValueError, "Program.findings:", "at_least is 'big'"),
            bad("step.findings(1.5)", TypeError, "Program.findings:", "at_least is 1.5"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.Program.totals",
        "step.totals()",
        [
            bad("step.totals('axes')", ValueError, "Program.totals:", "by is 'axes'", "'axis', 'kind' or 'line'"),
            bad("step.totals(None)", ValueError, "Program.totals:", "by is None"),
            bad("step.totals(0)", ValueError, "Program.totals:", "by is 0"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.Program.from_json",
        "audit.Program.from_json(step.to_json())",
        [
            bad("audit.Program.from_json('{')", ValueError, "Program.from_json:", "the text is not a program"),
            bad("audit.Program.from_json('{}')", ValueError, "Program.from_json:", "KeyError"),
            bad("audit.Program.from_json(None)", TypeError, "Program.from_json:", "text is None"),
            bad("audit.Program.from_json('[' * 100000)", ValueError, "Program.from_json:"),
        ],
        where=_STEP,
    ),
    Calls(
        "audit.compare",
        "audit.program('module @step {\\n}\\n')",
        [
            bad("audit.compare(None, None)", TypeError, "audit.compare:", "program is None", "expected a Program"),
            bad("audit.compare(step, None)", TypeError, "audit.compare:", "plan is None"),
            bad("audit.compare(step, 'plan')", TypeError, "audit.compare:", "expected a plan of plan_step, plan_training or plan_reshard"),
        ],
        where=_STEP,
    ),
]

import { preparePython } from "../test/support/prepare-python.ts";
import { measureCosts } from "./engine/measure-costs.ts";
import { measureHugeModel } from "./engine/measure-huge-model.ts";
import { reportBench } from "./result.ts";

await preparePython();
await reportBench("engine", [...(await measureCosts()), await measureHugeModel()]);

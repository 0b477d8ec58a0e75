import { preparePython } from "../test/support/prepare-python.ts";
import { measureFitted } from "./accuracy/measure-fitted.ts";
import { reportBench } from "./result.ts";

await preparePython();
await reportBench("accuracy", await measureFitted());

import { preparePython } from "../test/support/prepare-python.ts";
import { comparedModels, measureAccuracies } from "./accuracy/measure-accuracies.ts";
import { measureRecognition } from "./accuracy/measure-recognition.ts";
import { reportBench } from "./result.ts";

/** Arguments: names of the models that are compared, by default all, which takes hours. */
const [, ...chosen] = process.argv.slice(2);
const unknown = chosen.filter((name) => !comparedModels.includes(name));
if (unknown.length > 0) {
  throw new TypeError(`"${unknown.join(", ")}" is none of ${comparedModels.join(", ")}`);
}
await preparePython();
const rows = await measureAccuracies(chosen.length === 0 ? comparedModels : chosen);
if (chosen.length === 0) rows.push(...(await measureRecognition()));
await reportBench("accuracy", rows);

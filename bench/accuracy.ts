import { preparePython } from "../test/support/prepare-python.ts";
import { comparedModels, measureAccuracies } from "./accuracy/measure-accuracies.ts";
import { measureRecognition } from "./accuracy/measure-recognition.ts";
import { reportBench } from "./result.ts";

/** Arguments: names of the models that are compared, by default all, which takes hours. */
const [, ...chosen] = process.argv.slice(2);
const models = chosen.map((name) => {
  const model = comparedModels.find((each) => each === name);
  if (model === undefined)
    throw new TypeError(`"${name}" is not one of ${comparedModels.join(", ")}`);
  return model;
});
await preparePython();
const rows = await measureAccuracies(models.length === 0 ? comparedModels : models);
if (models.length === 0) rows.push(...(await measureRecognition()));
await reportBench("accuracy", rows);

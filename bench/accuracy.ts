import { preparePython } from "../test/support/prepare-python.ts";
import { measureAccuracies } from "./accuracy/measure-accuracies.ts";
import { measureRecognition } from "./accuracy/measure-recognition.ts";
import { reportBench } from "./result.ts";

await preparePython();
await reportBench("accuracy", [...(await measureAccuracies()), ...(await measureRecognition())]);

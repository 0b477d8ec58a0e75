import { buildMinutes, findCommand, type ToolModule } from "../test/support/cluster/programs.ts";
import {
  missingModules,
  missingReason,
  type Requirement,
} from "../test/support/cluster/requirements.ts";
import { isPythonPrepared } from "../test/support/prepare-python.ts";

const pythonMinutes = 2;
const imageMinutes = 3;
const testMinutes = 20;

interface Preparation {
  readonly title: string;
  readonly minutes: number;
  /** Why its tests are skipped; false where they run. */
  readonly skipped: string | false;
}

/** Says on standard error what the tests will build, how long that takes, and which tests will be skipped and why. */
export async function announcePreparation(
  requirements: readonly Requirement[],
  runsAll: boolean,
): Promise<void> {
  const preparations = [await findPythonPreparation()];
  const planned = new Set<ToolModule>();
  for (const requirement of requirements) {
    preparations.push(await findPreparation(requirement, planned));
  }
  for (const line of describePreparations(preparations, runsAll)) {
    process.stderr.write(`${line}\n`);
  }
}

export function describePreparations(
  preparations: readonly Preparation[],
  runsAll: boolean,
): readonly string[] {
  const built = preparations.filter(({ minutes, skipped }) => minutes > 0 && skipped === false);
  const total = built.reduce((sum, { minutes }) => sum + minutes, 0);
  const skipped = preparations.filter((preparation) => preparation.skipped !== false);
  return [
    built.length === 0
      ? "Nothing has to be built."
      : `To be built first, about ${total} minutes, once; kept in ~/.cache/model-optimization-service:`,
    ...built.map(({ title, minutes }) => `  ${title}: about ${minutes} min`),
    ...skipped.map(
      (preparation) => `Tests to be skipped. ${preparation.title}: ${preparation.skipped}`,
    ),
    ...(runsAll ? [`Then all tests run, about ${testMinutes} minutes on two cores.`] : []),
  ];
}

async function findPythonPreparation(): Promise<Preparation> {
  const minutes = (await isPythonPrepared()) ? 0 : pythonMinutes;
  return { title: "Python with onnx and onnxruntime", minutes, skipped: false };
}

async function findPreparation(
  requirement: Requirement,
  planned: Set<ToolModule>,
): Promise<Preparation> {
  const modules = await missingModules(requirement);
  const added = modules.filter((module) => !planned.has(module));
  for (const module of added) planned.add(module);
  const images = requirement.root && modules.length > 0 ? imageMinutes : 0;
  const minutes = added.reduce((sum, module) => sum + buildMinutes(module), images);
  return { title: requirement.title, minutes, skipped: await findSkipReason(requirement) };
}

async function findSkipReason(requirement: Requirement): Promise<string | false> {
  if (process.env["CI"] === "true") return false;
  const canBuild = (await findCommand("go")) !== undefined;
  return missingReason(canBuild ? { ...requirement, modules: [] } : requirement);
}

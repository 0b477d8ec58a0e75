import type { TestContext } from "node:test";
import { type Installation, release } from "./installation.ts";

/** Makes the steps of a group of tests; one that fails says how the cluster was then. */
export function createStepRunner(group: TestContext, installation: Installation) {
  return (name: string, work: (step: TestContext) => Promise<void>): Promise<void> =>
    group.test(name, async (step) => {
      try {
        await work(step);
      } catch (error) {
        step.diagnostic(await describeCluster(installation));
        throw error;
      }
    });
}

async function describeCluster({ kubectl }: Installation): Promise<string> {
  const commands = [
    "get cpj,cbatch,jobs,pods",
    "get events --sort-by=.lastTimestamp",
    `logs deployment/${release}-operator --tail=50`,
    `logs deployment/${release}-service --tail=50`,
  ];
  const texts = commands.map((command) => kubectl(command.split(" ")).catch(String));
  return (await Promise.all(texts)).join("\n");
}

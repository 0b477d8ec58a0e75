import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { ModelLayout } from "../../onnx/layout-model.ts";
import { taskResult } from "./partition.ts";
import type { TaskResult, WeightTask } from "./weight-task.ts";

const entry = taskResult.extend({ index: z.int().min(0) });

/**
 * Which tasks have written their outputs to the files of a folder, so that another process goes on
 * where one was killed. What a killed process wrote to a file is there, unless the file is gone.
 */
export class TaskJournal {
  readonly #file: string;
  /** By the positions of the tasks. */
  readonly finished: ReadonlyMap<number, TaskResult>;

  private constructor(file: string, finished: ReadonlyMap<number, TaskResult>) {
    this.#file = file;
    this.finished = finished;
  }

  static async open(directory: string, layout: Pick<ModelLayout, "files">): Promise<TaskJournal> {
    const names = await readdir(directory);
    const hasFiles = layout.files.every(({ name }) => names.includes(name));
    const file = path.join(directory, "finished-tasks");
    await using handle = await open(file, "a+");
    const text = hasFiles ? await handle.readFile("utf8") : "";
    // The last line may have been cut.
    const lines = text.slice(0, text.lastIndexOf("\n") + 1);
    await handle.truncate(Buffer.byteLength(lines));
    const entries = lines
      .split("\n")
      .slice(0, -1)
      .map((line) => entry.parse(JSON.parse(line)));
    const finished = entries.map(({ index, weight, sums, rejection }) => {
      return [index, { weight, sums, rejection }] as const;
    });
    return new TaskJournal(file, new Map(finished));
  }

  add(index: number, result: TaskResult): void {
    const line = { index, ...result } satisfies z.input<typeof entry>;
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** The same for the same tasks of one model whose outputs go to the same places. */
export function digestWork(
  tasks: readonly WeightTask[],
  { files, placements }: ModelLayout,
): string {
  const sizes = files.map(({ name, bytes }) => ({ name, bytes }));
  // Where the model's files are differs from one process to the next.
  const work = tasks.map((task) => ({ ...task, source: undefined }));
  const content = JSON.stringify({ work, sizes, placements: [...placements] });
  return createHash("sha256").update(content).digest("hex");
}

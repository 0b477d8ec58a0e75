import { createHash, randomBytes, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { job as jobSchema } from "../../src/contract/jobs/job.ts";
import { isTerminal } from "../../src/contract/jobs/status.ts";
import type { PersistentCaller } from "./persistent-caller.ts";

const modelBytes = 5_000;
const pollMs = 100;

/** What the service acknowledged, and what it answered though that cannot be. */
export interface Course {
  readonly jobs: string[];
  readonly models: string[];
  readonly deletedJobs: string[];
  readonly contradictions: string[];
  completed: number;
}

/** Uploads a model, submits a job for it, cancels that, reads its log, and deletes some. */
export async function submitAndCancel(
  { ask }: PersistentCaller,
  course: Course,
  isDeleted: boolean,
): Promise<void> {
  const body = randomBytes(modelBytes);
  const sha256 = hash(body);
  await expect(ask({ method: "PUT", path: `/models/${sha256}`, body }), [200, 201]);
  course.models.push(sha256);
  const id = await submit({ ask }, course, `upload:sha256:${sha256}`);
  await expect(ask({ method: "POST", path: `/jobs/cancel/${id}` }), [200, 202, 409]);
  await waitForEnd({ ask }, id);
  await checkLog({ ask }, course, id);
  if (!isDeleted) return;
  // Repeated after a failure that came behind the deletion, it finds nothing.
  await expect(ask({ method: "DELETE", path: `/jobs/${id}` }), [204, 404]);
  course.jobs.splice(course.jobs.indexOf(id), 1);
  course.deletedJobs.push(id);
}

/** Has a real worker compress a model, and reads all that it left. */
export async function runJob(
  { ask }: PersistentCaller,
  course: Course,
  source: string,
): Promise<void> {
  const id = await submit({ ask }, course, source);
  const { status, error, artifacts } = await waitForEnd({ ask }, id);
  await checkLog({ ask }, course, id);
  if (status !== "Completed") {
    course.contradictions.push(`${id} is ${status}: ${JSON.stringify(error)}`);
    return;
  }
  for (const { name, sha256 } of artifacts) {
    const { content } = await ask({ path: `/jobs/${id}/artifacts/${encodeURIComponent(name)}` });
    if (hash(content) !== sha256) course.contradictions.push(`${id} has another ${name}`);
  }
  course.completed++;
}

async function submit(
  { ask }: Pick<PersistentCaller, "ask">,
  course: Course,
  source: string,
): Promise<string> {
  const recipe = { evaluation: { level: "none" } };
  const { content } = await expect(
    ask({
      method: "POST",
      path: "/compress",
      headers: { "content-type": "application/json", "idempotency-key": randomUUID() },
      body: JSON.stringify({ model: { source }, target: "cpu", recipe }),
    }),
    [202],
  );
  const { id } = jobSchema.pick({ id: true }).parse(JSON.parse(content.toString()));
  course.jobs.push(id);
  return id;
}

async function waitForEnd({ ask }: Pick<PersistentCaller, "ask">, id: string) {
  for (;;) {
    const { content } = await ask({ path: `/jobs/${id}` });
    const job = jobSchema.parse(JSON.parse(content.toString()));
    if (isTerminal(job.status)) return job;
    await delay(pollMs);
  }
}

/** Lines rise by one. */
async function checkLog({ ask }: Pick<PersistentCaller, "ask">, course: Course, id: string) {
  const { content } = await ask({ path: `/jobs/${id}/logs` });
  const numbers = Array.from(content.toString().matchAll(/^id: (\d+)$/gm), ([, n]) => Number(n));
  if (numbers.some((number, i) => number !== i + 1)) {
    course.contradictions.push(`The log of ${id} has the lines ${numbers.join()}`);
  }
}

type Answer = ReturnType<PersistentCaller["ask"]>;

async function expect(answering: Answer, statuses: readonly number[]) {
  const answer = await answering;
  if (!statuses.includes(answer.status)) {
    throw new Error(`${answer.status}: ${answer.content.toString()}`);
  }
  return answer;
}

function hash(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

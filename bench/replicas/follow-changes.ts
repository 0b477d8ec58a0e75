import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { jobStatus, type JobStatus } from "../../src/contract/jobs/status.ts";

const jobEvent = z.object({ id: z.string(), status: jobStatus });

interface FollowedService {
  readonly origin: string;
  readonly token: string;
}

/** Follows all changes of jobs, also after connections that were lost, into a map of statuses. */
export async function followChanges(
  service: FollowedService,
  statuses: Map<string, JobStatus>,
  signal: AbortSignal,
): Promise<void> {
  let last = "0";
  const record = (block: string) => {
    last = /^id: (\d+)$/m.exec(block)?.[1] ?? last;
    const [, document] = /^event: job\ndata: (.*)$/m.exec(block) ?? [];
    if (document === undefined) return;
    const { id, status } = jobEvent.parse(JSON.parse(document));
    statuses.set(id, status);
  };
  while (!signal.aborted) {
    // Where the replica is killed, the next one goes on behind the last event.
    await readBlocks(service, last, { signal, record }).catch(() => {});
    await delay(100);
  }
}

interface BlockReader {
  readonly signal: AbortSignal;
  readonly record: (block: string) => void;
}

async function readBlocks(
  { origin, token }: FollowedService,
  last: string,
  { signal, record }: BlockReader,
): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "last-event-id": last };
  const answer = await fetch(`${origin}/v1/events?follow=true`, { headers, signal });
  let rest = "";
  for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) record(block);
  }
}

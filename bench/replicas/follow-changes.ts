import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { jobStatus, type JobStatus } from "../../src/contract/status.ts";

const jobEvent = z.object({ id: z.string(), status: jobStatus });

/** Follows all changes of jobs, also after connections that were lost, into a map of statuses. */
export async function followChanges(
  { origin, token }: { readonly origin: string; readonly token: string },
  statuses: Map<string, JobStatus>,
  signal: AbortSignal,
): Promise<void> {
  for (let last = "0"; !signal.aborted; await delay(100)) {
    const headers = { authorization: `Bearer ${token}`, "last-event-id": last };
    try {
      const answer = await fetch(`${origin}/v1/events?follow=true`, { headers, signal });
      let rest = "";
      for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const blocks = (rest + text).split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) {
          last = /^id: (\d+)$/m.exec(block)?.[1] ?? last;
          const document = /^event: job\ndata: (.*)$/m.exec(block)?.[1];
          if (document === undefined) continue;
          const { id, status } = jobEvent.parse(JSON.parse(document));
          statuses.set(id, status);
        }
      }
    } catch {
      // The replica was killed: the next one goes on behind the last event.
    }
  }
}

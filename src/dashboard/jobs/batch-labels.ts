import { type ReadonlySignal, signal, type Signal } from "@preact/signals";
import type { BatchSummary } from "../../contract/batches/batch.ts";
import { service } from "../session/service.ts";

type BatchLabel = Pick<BatchSummary, "name" | "suite" | "revision">;

const labels = new Map<string, Signal<BatchLabel | undefined>>();
let asked: Promise<void> | undefined;

/** The name of a batch and its commit, which rows of jobs do not have; undefined until it is known. */
export function batchLabel(id: string): ReadonlySignal<BatchLabel | undefined> {
  const known = labels.get(id);
  if (known !== undefined) return known;
  const label = signal<BatchLabel | undefined>(undefined);
  labels.set(id, label);
  // One page names the batches of most rows at once.
  asked ??= loadNewest();
  void asked.then(() => (label.value === undefined ? loadOne(id, label) : undefined));
  return label;
}

async function loadNewest(): Promise<void> {
  const page = await service.call("listBatches", { query: { limit: "50" } }).catch(() => undefined);
  for (const batch of page?.batches ?? []) {
    const label = labels.get(batch.id);
    if (label === undefined) labels.set(batch.id, signal(batch));
    else label.value = batch;
  }
}

/** A name that cannot be read is left out: its id says the same. */
async function loadOne(id: string, label: Signal<BatchLabel | undefined>): Promise<void> {
  label.value = await service.call("getBatch", { params: { id } }).catch(() => undefined);
}

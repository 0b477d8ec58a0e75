import { type Signal, signal } from "@preact/signals";
import type { JobFilters } from "./job-filters.ts";
import { JobList } from "./job-list.ts";
import { randomKey } from "../shared/random-key.ts";

/** A list as somebody left it. */
export interface KeptList {
  readonly list: JobList;
  readonly selected: Signal<ReadonlySet<string>>;
  readonly stop: () => void;
  scrollY: number;
}

/** Lists to go back to. */
const mostKept = 5;
const kept = new Map<string, KeptList>();

/** The list of an entry of the browser's history: as it was left, or a new one. */
export function openKeptList(filters: JobFilters): KeptList {
  const key = readEntryKey();
  const former = kept.get(key);
  if (former !== undefined) return former;
  const list = new JobList(filters);
  const selected = signal<ReadonlySet<string>>(new Set());
  const opened: KeptList = { list, selected, stop: list.follow(), scrollY: 0 };
  kept.set(key, opened);
  for (const [oldest, { stop }] of [...kept].slice(0, -mostKept)) {
    stop();
    kept.delete(oldest);
  }
  void list.load("newest");
  return opened;
}

/** Entries of the history are told apart by what the page leaves in their states. */
function readEntryKey(): string {
  const state: unknown = history.state;
  const isKeyed = typeof state === "object" && state !== null && "list" in state;
  if (isKeyed && typeof state.list === "string") return state.list;
  const key = randomKey();
  history.replaceState({ list: key }, "");
  return key;
}

import { type Signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { JobLog } from "./job-log.ts";
import { LogSearch } from "./log-search.ts";
import { LogView } from "./log-view.tsx";

/** The log of a job: live, to be searched, with a link to each line. */
export function JobLogCard({ jobId }: { readonly jobId: string }) {
  const log = useMemo(() => new JobLog(), [jobId]);
  const search = useMemo(() => new LogSearch(log), [log]);
  const hit = useSignal(0);
  const isFollowing = useSignal(!location.hash.startsWith("#L"));
  useEffect(() => log.follow(jobId), [jobId]);
  useEffect(() => log.count.subscribe(() => search.goOn()), [log]);
  const lines = useComputed(() => log.count.value.toLocaleString("en"));
  const goTo = (index: number) => {
    isFollowing.value = false;
    hit.value = index % Math.max(1, search.hits.length);
  };
  return (
    <section class="card c12">
      <header>
        <h2>Log</h2>
        <span class="dim">{lines} lines</span>
        <span class="grow" />
        <LogSearchForm search={search} hit={hit.value} onHit={goTo} />
        {!log.isComplete.value && <FollowButton isFollowing={isFollowing} />}
        <a class="button" href={`/v1/jobs/${jobId}/logs?follow=false`} download={`${jobId}.log`}>
          Download
        </a>
      </header>
      <MaybeError error={log.error.value} />
      <LogView log={log} isFollowing={isFollowing} shown={findShown(search, hit.value)} />
    </section>
  );
}

/** Index of the line to show; undefined while none is found. */
function findShown({ hits, count }: LogSearch, hit: number): number | undefined {
  return count.value > hit ? hits[hit] : undefined;
}

interface LogSearchFormProps {
  readonly search: LogSearch;
  readonly hit: number;
  readonly onHit: (hit: number) => void;
}

function LogSearchForm({ search, hit, onHit }: LogSearchFormProps) {
  const isEmpty = useSignal(true);
  const goOn = (event: Event) => {
    event.preventDefault();
    onHit(hit + 1);
  };
  const type = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => {
    isEmpty.value = currentTarget.value === "";
    search.begin(currentTarget.value);
    onHit(0);
  };
  const hits = search.count.value;
  const found = hits === 0 ? "nothing" : `${hit + 1} of ${hits.toLocaleString("en")}`;
  return (
    <form class="log-search" role="search" onSubmit={goOn}>
      <input type="search" aria-label="Search the log" placeholder="Search" onInput={type} />
      <span class="soft" role="status">
        {!isEmpty.value && found}
      </span>
    </form>
  );
}

function FollowButton({ isFollowing }: { readonly isFollowing: Signal<boolean> }) {
  return (
    <Button look="quiet" onClick={() => (isFollowing.value = !isFollowing.value)}>
      <Icon name={isFollowing.value ? "check" : "down"} />
      {isFollowing.value ? "Following" : "Follow"}
    </Button>
  );
}

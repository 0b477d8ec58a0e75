import { type Signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { Icon } from "../shared/icon.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { JobLog } from "./job-log.ts";
import { LogView } from "./log-view.tsx";

/** The log of a job: live, to be searched, with a link to each line. */
export function JobLogCard({ jobId }: { readonly jobId: string }) {
  const log = useMemo(() => new JobLog(), [jobId]);
  const wanted = useSignal("");
  const hit = useSignal(0);
  const isFollowing = useSignal(!location.hash.startsWith("#L"));
  useEffect(() => log.follow(jobId), [jobId]);
  const hits = useComputed(() => (log.count.value >= 0 ? log.search(wanted.value) : []));
  const goTo = (index: number) => {
    isFollowing.value = false;
    hit.value = (index + hits.value.length) % Math.max(1, hits.value.length);
  };
  return (
    <section class="card c12">
      <header>
        <h2>Log</h2>
        <span class="dim">{log.count} lines</span>
        <span class="grow" />
        <LogSearch wanted={wanted} hit={hit.value} hits={hits.value.length} onHit={goTo} />
        {!log.isComplete.value && <FollowButton isFollowing={isFollowing} />}
        <a class="button" href={`/v1/jobs/${jobId}/logs?follow=false`} download={`${jobId}.log`}>
          Download
        </a>
      </header>
      <MaybeError error={log.error.value} />
      <LogView log={log} isFollowing={isFollowing} hits={hits.value} hit={hit.value} />
    </section>
  );
}

interface LogSearchProps {
  readonly wanted: Signal<string>;
  readonly hit: number;
  readonly hits: number;
  readonly onHit: (index: number) => void;
}

function LogSearch({ wanted, hit, hits, onHit }: LogSearchProps) {
  const goOn = (event: Event) => {
    event.preventDefault();
    onHit(hit + 1);
  };
  const type = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => {
    wanted.value = currentTarget.value;
    onHit(0);
  };
  const found = hits === 0 ? "nothing" : `${hit + 1} of ${hits}`;
  return (
    <form class="log-search" role="search" onSubmit={goOn}>
      <input type="search" aria-label="Search the log" placeholder="Search" onInput={type} />
      <span class="soft" role="status">
        {wanted.value !== "" && found}
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

import { useSignal } from "@preact/signals";
import type { ComponentProps } from "preact";
import { useEffect } from "preact/hooks";
import { loadResultChanges } from "../changes/load-changes.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { changesAddress } from "../../contract/page-addresses.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Button } from "../shared/button.tsx";
import { UnloadedNotice } from "../shared/load-later.tsx";
import { useScrollFromAddress } from "../shared/scroll-from-address.ts";
import type { GraphView as LoadedView } from "./graph-view.tsx";

/** The name in the address of an open graph; null where none is open, undefined without one. */
function readOpenName(): string | undefined | null {
  // Also of an address that was cut, which decodeURIComponent refuses.
  const name = new URLSearchParams(location.hash.slice(1)).get("graph");
  return name === "" ? undefined : name;
}

/** The model's graph, which is loaded when somebody opens it. */
export function GraphCard({ job }: { readonly job: JobDetail }) {
  const { id, artifacts, dryRun } = job;
  const name = useSignal(readOpenName());
  const isOpen = name.value !== null;
  const card = useScrollFromAddress("graph");
  useEffect(() => {
    const open = () => {
      const wanted = readOpenName();
      if (wanted === null) return;
      name.value = wanted;
      card.current?.scrollIntoView();
    };
    addEventListener("hashchange", open);
    return () => removeEventListener("hashchange", open);
  }, []);
  const file = artifacts.find(({ kind }) => kind === "graph");
  if (file === undefined) return undefined;
  const toggle = () => {
    name.value = isOpen ? null : undefined;
    history.replaceState(history.state, "", isOpen ? location.pathname : "#graph");
  };
  return (
    <section ref={card} class="card c12">
      <header>
        <h2>Graph</h2>
        <span class="dim phone-off">
          {dryRun ? "Of the original" : "Of original and result"}, {formatBytes(file.bytes)}
        </span>
        <span class="grow" />
        {!dryRun && <a href={changesAddress(id)}>What changed in it</a>}
        <Button onClick={toggle}>{isOpen ? "Close the graph" : "Open the graph"}</Button>
      </header>
      {name.value !== null && (
        <LazyView
          address={artifactAddress(id, file.name)}
          name={name.value}
          loadChanges={() => loadResultChanges(job)}
        />
      )}
    </section>
  );
}

function LazyView(view: ComponentProps<typeof LoadedView>) {
  const View = useSignal<typeof LoadedView | undefined>(undefined);
  const isUnloaded = useSignal(false);
  useEffect(() => {
    import("./graph-view.tsx").then(
      ({ GraphView }) => (View.value = GraphView),
      () => (isUnloaded.value = true),
    );
  }, []);
  if (isUnloaded.value) return <UnloadedNotice />;
  if (View.value === undefined) return undefined;
  return <View.value {...view} />;
}

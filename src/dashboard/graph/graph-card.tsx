import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Job } from "../../contract/jobs/job.ts";
import { changesAddress } from "../../contract/page-addresses.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Button } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import type { GraphView as LoadedView } from "./graph-view.tsx";

/** The address's mark of a graph that is open. */
const openHash = "#graph";

/** The model's graph, which is loaded when somebody opens it. */
export function GraphCard({ job: { id, artifacts } }: { readonly job: Job }) {
  const isOpen = useSignal(location.hash === openHash);
  useEffect(() => {
    const open = () => (isOpen.value ||= location.hash === openHash);
    addEventListener("hashchange", open);
    return () => removeEventListener("hashchange", open);
  }, []);
  const file = artifacts.find(({ kind }) => kind === "graph");
  if (file === undefined) return undefined;
  const toggle = () => {
    isOpen.value = !isOpen.value;
    history.replaceState(history.state, "", isOpen.value ? openHash : location.pathname);
  };
  return (
    <section class="card c12">
      <header>
        <h2>Graph</h2>
        <span class="dim">
          Nodes of the original model, by error or size · {formatBytes(file.bytes)}
        </span>
        <span class="grow" />
        <a href={changesAddress(id)}>What changed in it</a>
        <Button onClick={toggle}>{isOpen.value ? "Close the graph" : "Open the graph"}</Button>
      </header>
      {isOpen.value && <LazyView address={artifactAddress(id, file.name)} />}
    </section>
  );
}

function LazyView({ address }: { readonly address: string }) {
  const View = useSignal<typeof LoadedView | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  useEffect(() => {
    import("./graph-view.tsx").then(
      ({ GraphView }) => (View.value = GraphView),
      (thrown: unknown) => (error.value = thrown),
    );
  }, []);
  if (View.value === undefined) return <MaybeError error={error.value} />;
  return <View.value address={address} />;
}

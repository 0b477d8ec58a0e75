import { formatBytes } from "../../contract/text/format-bytes.ts";
import { artifactAddress } from "../shared/addresses.ts";
import { Icon } from "../shared/icon.tsx";
import type { JobDetail } from "./shown-job.ts";

export function ArtifactList({ job: { id, artifacts } }: { readonly job: JobDetail }) {
  if (artifacts.length === 0) return undefined;
  return (
    <section class="card">
      <header>
        <h2>Artifacts</h2>
        <span class="dim">{artifacts.length} files</span>
      </header>
      <ul class="list">
        {artifacts.map((artifact) => (
          <ArtifactLine key={artifact.name} jobId={id} artifact={artifact} />
        ))}
      </ul>
    </section>
  );
}

interface ArtifactLineProps {
  readonly jobId: string;
  readonly artifact: JobDetail["artifacts"][number];
}

function ArtifactLine({ jobId, artifact: { name, bytes, sha256 } }: ArtifactLineProps) {
  return (
    <li>
      <a class="mono grow" href={artifactAddress(jobId, name)} download title={sha256}>
        {name}
      </a>
      <span class="soft">{formatBytes(bytes)}</span>
      <Icon name="down" />
    </li>
  );
}

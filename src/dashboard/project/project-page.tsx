import { UsageCard } from "../health/usage-card.tsx";
import { mayDo } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { PageHead } from "../shared/page-head.tsx";
import { MemberCard } from "./member-card.tsx";
import { ProjectListCard } from "./project-list-card.tsx";
import { TrustCard } from "./trust-card.tsx";

/** The project in which the session acts: members, quotas, and which workflows are trusted. */
export function ProjectPage() {
  const { project = "" } = self.value ?? {};
  return (
    <main id="main">
      <PageHead title="Project" sign={<span class="dim">{project}</span>} />
      <div class="sheet">
        {mayDo("manageMembers") && <MemberCard project={project} />}
        <UsageCard />
        {mayDo("manageProjects") && <ProjectListCard />}
        {mayDo("readTrustPolicy") && <TrustCard />}
      </div>
    </main>
  );
}

import { useSignal } from "@preact/signals";
import { MemberCard } from "./member-card.tsx";
import { TrustCard } from "./trust-card.tsx";
import { type Project, projectName } from "../../contract/project.ts";
import { UsageCard } from "../health/usage-card.tsx";
import { service } from "../session/service.ts";
import { self } from "../session/session-state.ts";
import { chooseProject, loadSelf, mayDo } from "../session/session.ts";
import { Button } from "../shared/button.tsx";
import { TextField } from "../shared/field.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { Age, PageHead } from "../shared/page-head.tsx";
import { useLive } from "../live/use-live.ts";

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

function ProjectListCard() {
  const { value: projects = [], error, reload } = useLive(loadProjects);
  return (
    <section class="card c5" aria-labelledby="projects">
      <header>
        <h2 id="projects">All projects</h2>
      </header>
      <MaybeError error={error} retry={reload} />
      <ul class="list">
        {projects.map((project) => (
          <ProjectLine key={project.name} {...project} />
        ))}
      </ul>
      <NewProjectForm onCreated={reload} />
    </section>
  );
}

async function loadProjects(): Promise<readonly Project[]> {
  return (await service.call("listProjects", {})).projects;
}

function ProjectLine({ name, createdAt }: Project) {
  return (
    <li>
      <span class="two cut-anywhere">
        <b>{name}</b>
        <small>
          created <Age at={createdAt} />
        </small>
      </span>
      <span class="grow" />
      <OpenProject name={name} />
    </li>
  );
}

function OpenProject({ name }: Pick<Project, "name">) {
  if (name === self.value?.project) return <span class="dim">open</span>;
  return (
    <Button look="quiet" onClick={() => chooseProject(name)}>
      Open<span class="sr"> {name}</span>
    </Button>
  );
}

function useNewProject(onCreated: () => Promise<void>) {
  const name = useSignal("");
  const message = useSignal<string | undefined>(undefined);
  const failure = useSignal<unknown>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    const { success, data: project } = projectName.safeParse(name.value.trim());
    message.value = success ? undefined : projectName.description;
    if (!success) return;
    await service.call("createProject", { params: { project } });
    name.value = "";
    await Promise.all([onCreated(), loadSelf()]);
  };
  const send = (event: Event) =>
    void submit(event).catch((error: unknown) => (failure.value = error));
  return { name, message, failure, send };
}

function NewProjectForm({ onCreated }: { readonly onCreated: () => Promise<void> }) {
  const { name, message, failure, send } = useNewProject(onCreated);
  return (
    <form class="card-form" onSubmit={send} noValidate>
      <MaybeError error={failure.value} />
      <TextField label="New project" hint="Such as vision-team" error={message.value} text={name} />
      <button>Create project</button>
    </form>
  );
}

import { useSignal } from "@preact/signals";
import { type Project, projectName } from "../../contract/project.ts";
import { chooseProject, loadSelf } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { TextField } from "../shared/text-field.tsx";
import { Age } from "../shared/time.tsx";
import { useLoaded } from "../shared/use-loaded.ts";

/** All projects of the installation, for its administrators. */
export function ProjectListCard() {
  const { value: projects = [], error, reload } = useLoaded(loadProjects);
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

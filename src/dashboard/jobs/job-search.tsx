import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useRef } from "preact/hooks";
import { type JobFilters, readSearch } from "./job-filters.ts";
import { Icon } from "../shared/button.tsx";
import { isTyping } from "../shared/palette.ts";

/** Finds jobs by model, target, label, batch or id; `/` leads to it. */
export function JobSearch({ filters }: { readonly filters: JobFilters }) {
  const { route } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  const problem = useSignal<string | undefined>(undefined);
  useEffect(() => focusBySlash(input.current), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const found = readSearch(input.current?.value ?? "", filters);
    problem.value = "problem" in found ? found.problem : undefined;
    if ("problem" in found) return;
    if (input.current) input.current.value = "";
    route(found.address);
  };
  return (
    <form class="field" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={input}
        aria-label="Find jobs"
        aria-describedby="search-problem"
        aria-invalid={problem.value !== undefined}
        placeholder="Model, target:cpu status:failed, id"
        autocomplete="off"
        spellcheck={false}
      />
      <kbd>/</kbd>
      <span id="search-problem" class="field-problem" role="status">
        {problem.value}
      </span>
    </form>
  );
}

function focusBySlash(input: HTMLInputElement | null): () => void {
  const listen = (event: KeyboardEvent) => {
    if (event.key !== "/" || isTyping(event)) return;
    event.preventDefault();
    input?.focus();
  };
  addEventListener("keydown", listen);
  return () => removeEventListener("keydown", listen);
}

import { useLocation } from "preact-iso";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../shared/icon.tsx";
import { isTyping } from "../shared/is-typing.ts";
import { type JobFilters, searchAddress } from "./job-filters.ts";

/** Finds jobs by model, target, label, batch or id; `/` leads to it. */
export function JobSearch({ filters }: { readonly filters: JobFilters }) {
  const { route } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => focusBySlash(input.current), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const text = input.current?.value ?? "";
    if (input.current) input.current.value = "";
    route(searchAddress(text, filters));
  };
  return (
    <form class="field" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={input}
        aria-label="Find jobs"
        placeholder="Model, target:cpu, label:a=b or id"
        autocomplete="off"
        spellcheck={false}
      />
      <kbd>/</kbd>
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

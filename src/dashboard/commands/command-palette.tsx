import "./commands.css";
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import { Dialog } from "../shared/dialog.tsx";
import { listCommands } from "./list-commands.ts";
import { type Command, matchCommands } from "./match-commands.ts";
import { useFoundJobs } from "./use-found-jobs.ts";

/** Finds a page, a job or an action by its name, from the keyboard. */
export function CommandPalette({ onClose }: { readonly onClose: () => void }) {
  const text = useSignal("");
  const active = useSignal(0);
  const listId = useId();
  const { path, route } = useLocation();
  const commands = useMemo(() => listCommands(path), [path]);
  const jobs = useFoundJobs(text.value.trim());
  const found = matchCommands([...commands, ...jobs], text.value);
  const run = ({ leadsTo }: Command) => {
    onClose();
    if (typeof leadsTo === "string") route(leadsTo);
    else leadsTo();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = found[active.value];
    if (step !== undefined) {
      active.value = (active.value + step + found.length) % Math.max(1, found.length);
    } else if (event.key === "Enter" && chosen !== undefined) run(chosen);
    else return;
    event.preventDefault();
  };
  const type = (typed: string) => {
    text.value = typed;
    active.value = 0;
  };
  return (
    <Dialog title="Commands" look="palette" onClose={onClose}>
      <CommandInput listId={listId} active={active.value} onInput={type} onKeyDown={press} />
      <ul id={listId} role="listbox" aria-label="Commands">
        {found.map((command, index) => (
          <CommandOption
            key={command.id}
            id={`${listId}-${index}`}
            command={command}
            isActive={index === active.value}
            onClick={() => run(command)}
          />
        ))}
      </ul>
      {found.length === 0 && <p class="card-note">Nothing has this name</p>}
    </Dialog>
  );
}

interface CommandInputProps {
  readonly listId: string;
  readonly active: number;
  readonly onInput: (text: string) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

function CommandInput({ listId, active, onInput, onKeyDown }: CommandInputProps) {
  return (
    <input
      role="combobox"
      aria-label="Find a page, a job or an action"
      aria-expanded="true"
      aria-controls={listId}
      aria-activedescendant={`${listId}-${active}`}
      aria-autocomplete="list"
      placeholder="Page, job, job id or action"
      autocomplete="off"
      spellcheck={false}
      onInput={({ currentTarget }) => onInput(currentTarget.value)}
      onKeyDown={onKeyDown}
    />
  );
}

interface CommandOptionProps {
  readonly id: string;
  readonly command: Command;
  readonly isActive: boolean;
  readonly onClick: () => void;
}

function CommandOption({ id, command, isActive, onClick }: CommandOptionProps) {
  const option = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isActive) option.current?.scrollIntoView({ block: "nearest" });
  }, [isActive]);
  const { label, detail, kind } = command;
  return (
    <li ref={option} id={id} role="option" aria-selected={isActive} onClick={onClick}>
      <b class="cut">{label}</b>
      <span class="dim cut grow">{detail}</span>
      <span class="tag">{kind}</span>
    </li>
  );
}

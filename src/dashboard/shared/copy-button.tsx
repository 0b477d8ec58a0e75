import { useSignal } from "@preact/signals";
import { Icon } from "./icon.tsx";

const shownMs = 2000;

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, label = "Copy" }: { readonly text: string; label?: string }) {
  const isCopied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    isCopied.value = true;
    setTimeout(() => (isCopied.value = false), shownMs);
  };
  return (
    <button type="button" onClick={() => void copy()}>
      <Icon name={isCopied.value ? "check" : "copy"} />
      <span aria-live="polite">{isCopied.value ? "Copied" : label}</span>
    </button>
  );
}

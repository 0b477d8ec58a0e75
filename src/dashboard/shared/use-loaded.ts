import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly reload: () => Promise<void>;
}

/** Loads something when a page opens; what was loaded stays while it is loaded again. */
export function useLoaded<T>(load: () => Promise<T>): Loaded<T> {
  const value = useSignal<T | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const reload = async () => {
    try {
      value.value = await load();
      error.value = undefined;
    } catch (thrown) {
      error.value = thrown;
    }
  };
  useEffect(() => void reload(), []);
  return { value: value.value, error: error.value, reload };
}

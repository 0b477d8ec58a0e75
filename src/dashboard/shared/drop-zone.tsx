import { useSignal } from "@preact/signals";

interface DropZoneProps {
  readonly title: string;
  readonly multiple?: boolean;
  readonly onFiles: (files: readonly File[]) => void;
}

/** Takes ONNX files that are dropped there, or chosen. */
export function DropZone({ title, multiple = false, onFiles }: DropZoneProps) {
  const isOver = useSignal(false);
  const drag = (event: DragEvent) => {
    event.preventDefault();
    isOver.value = event.type === "dragover";
    if (event.type === "drop") onFiles([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <label
      class={isOver.value ? "drop is-over" : "drop"}
      onDragOver={drag}
      onDragLeave={drag}
      onDrop={drag}
    >
      <b>{title}</b>
      <span class="soft">
        or choose {multiple ? "some; they are" : "one; it is"} sent only to this service
      </span>
      <input
        type="file"
        class="sr"
        accept=".onnx"
        multiple={multiple}
        onChange={({ currentTarget }) => onFiles([...(currentTarget.files ?? [])])}
      />
    </label>
  );
}

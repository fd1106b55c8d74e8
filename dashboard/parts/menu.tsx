// A button with a short list of things to do.
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Icon } from "../icons";

export function Menu({
  label,
  items,
}: {
  label: string;
  items: readonly (readonly [string, () => void])[];
}): ReactNode {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    const away = (event: Event): void => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
    };
    const escape = (event: KeyboardEvent): void => {
      if (event.key === "Escape") {
        event.preventDefault();
        event.stopPropagation();
        setOpen(false);
        box.current?.querySelector("button")?.focus();
      }
    };
    document.addEventListener("pointerdown", away);
    document.addEventListener("keydown", escape, true);
    box.current?.querySelector<HTMLButtonElement>(".menu button")?.focus();
    return () => {
      document.removeEventListener("pointerdown", away);
      document.removeEventListener("keydown", escape, true);
    };
  }, [open]);
  return (
    <div className="menu-box" ref={box}>
      <button
        type="button"
        className="btn"
        aria-label={label}
        aria-haspopup="true"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="more" className="thick" />
      </button>
      {open ? (
        <ul className="menu">
          {items.map(([name, act]) => (
            <li key={name}>
              <button
                type="button"
                onClick={() => {
                  setOpen(false);
                  act();
                }}
              >
                {name}
              </button>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

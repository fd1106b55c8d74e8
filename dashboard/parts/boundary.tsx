// A fault of ours stays in its place: the block says so, and the rest of the page works.
import { Component, type ErrorInfo, type ReactNode } from "react";
import { facts } from "../state/facts";
import { Button, CopyButton } from "./basic";

export class Boundary extends Component<{ name: string; children: ReactNode }, { fault: Error | null; stack: string }> {
  override state: { fault: Error | null; stack: string } = { fault: null, stack: "" };

  static getDerivedStateFromError(fault: Error): { fault: Error } {
    return { fault };
  }

  override componentDidCatch(_: Error, info: ErrorInfo): void {
    this.setState({ stack: info.componentStack ?? "" });
  }

  override render(): ReactNode {
    const { fault, stack } = this.state;
    if (fault === null) return this.props.children;
    const report = `clawdforge ${facts.get().version}\n${this.props.name}\n${fault.name}: ${fault.message}\n${fault.stack ?? ""}\n${stack}`;
    return (
      <div className="refusal" role="alert">
        <div className="grow">
          <p>
            <b>This part of the page failed: a fault of ours.</b>
          </p>
          <p className="muted">
            The rest works. The report has the version, the place and the stack, and nothing of your data.
          </p>
        </div>
        <CopyButton text={report} label="Copy report" />
        <Button onClick={() => this.setState({ fault: null })}>Try again</Button>
      </div>
    );
  }
}

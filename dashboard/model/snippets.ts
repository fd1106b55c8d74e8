// The same call from a program. Pure.

export type Language = "curl" | "python" | "typescript";

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export function codeFor(language: Language, url: string, body: Record<string, unknown>): string {
  const json = JSON.stringify(body);
  if (language === "curl")
    return `curl --json ${shellQuoted(json)} \\\n  -H "Authorization: Bearer $TOKEN" \\\n  ${shellQuoted(url)}`;
  if (language === "python") {
    return `import json, os, urllib.request\n\nrequest = urllib.request.Request(\n    ${JSON.stringify(url)},\n    data=json.dumps(json.loads(${JSON.stringify(json)})).encode(),\n    headers={"Authorization": "Bearer " + os.environ["TOKEN"],\n             "Content-Type": "application/json"})\nprint(json.load(urllib.request.urlopen(request)))`;
  }
  return `const response = await fetch(${JSON.stringify(url)}, {\n  method: "POST",\n  headers: { Authorization: \`Bearer \${process.env.TOKEN}\`,\n             "Content-Type": "application/json" },\n  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),\n});\nconsole.log(await response.json());`;
}

"""The page of all calls, made from docs/openapi.yaml: HTML, as cmark-gfm would have made it."""
import html
import json
import re

import yaml

METHODS = ("get", "post", "put", "patch", "delete")
# An answer that so large a part of the calls may give is named only: docs/api.md explains it once.
COMMON_FROM = 0.6


class Reference:
    def __init__(self, document, markdown):
        self.document, self.markdown = document, markdown
        self.out = []
        self.calls = [call for calls in document["paths"].values() for method, call in calls.items() if method in METHODS]

    def is_common(self, status, response):
        same = sum(call["responses"].get(status) == response for call in self.calls)
        return "$ref" in response and same >= COMMON_FROM * len(self.calls)

    def resolve(self, node):
        while "$ref" in node:
            place = self.document
            for key in node["$ref"].removeprefix("#/").split("/"):
                place = place[key]
            node = place
        return node

    # Pieces

    def add(self, *lines):
        self.out.extend(lines)

    def prose(self, text):
        return self.markdown(text or "")

    def inline(self, text):
        """One paragraph without its tags."""
        if not re.search(r"[\\`*_\[\]<>&~\n]", text):
            return html.escape(text, quote=False)
        return re.sub(r"^<p>(.*)</p>\s*$", r"\1", self.prose(text), flags=re.S)

    def table(self, heads, rows):
        if not rows:
            return
        cells = "".join(f"<th>{head}</th>" for head in heads)
        self.add(f"<table><thead><tr>{cells}</tr></thead><tbody>")
        self.out.extend("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        self.add("</tbody></table>")

    # Types

    def kind(self, schema):
        """A type in a few words, with links to named ones."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return f'<a href="#schema-{name.lower()}">{html.escape(name)}</a>'
        for word, joint in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
            if word in schema:
                return joint.join(dict.fromkeys(self.kind(part) for part in schema[word]))
        if "const" in schema:
            return f"<code>{html.escape(json.dumps(schema['const']))}</code>"
        if "enum" in schema:
            return ", ".join(f"<code>{html.escape(json.dumps(value))}</code>" for value in schema["enum"])
        types = schema.get("type", "anything")
        types = [types] if isinstance(types, str) else types
        return " or ".join(self.one_kind(schema, word) for word in types)

    def one_kind(self, schema, word):
        if word == "array":
            return "list of " + self.kind(schema.get("items", {}))
        if word == "object" and isinstance(schema.get("additionalProperties"), dict):
            return "object of " + self.kind(schema["additionalProperties"])
        return word

    def bounds(self, schema):
        """What else holds of a value."""
        schema = self.resolve(schema)
        words = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "minLength": "at least that many characters:",
                 "maxLength": "at most that many characters:", "minItems": "at least that many:", "maxItems": "at most that many:",
                 "pattern": "matches", "default": "default"}
        said = [f"{text} <code>{html.escape(str(schema[word]) if word == 'pattern' else json.dumps(schema[word]))}</code>"
                for word, text in words.items() if word in schema]
        return "; ".join(said)

    def meaning(self, schema, description=None):
        text = self.inline(description if description is not None else schema.get("description") or self.resolve(schema).get("description", ""))
        bounds = self.bounds(schema)
        return f"{text} <small>{bounds}</small>" if bounds else text

    def fields(self, schema):
        """Rows of an object's properties, of all parts of it."""
        schema = self.resolve(schema)
        rows = []
        for part in schema.get("allOf", []):
            rows += self.fields(part)
        for name, field in schema.get("properties", {}).items():
            must = " <em>required</em>" if name in schema.get("required", []) else ""
            rows.append((f"<code>{html.escape(name)}</code>{must}", self.kind(field), self.meaning(field)))
        return rows

    # Calls

    def who(self, call):
        names = {name for entry in call.get("security", []) for name in entry}
        if not names:
            return "without a token"
        return " or ".join({"appToken": "with an app’s token", "adminToken": "with the admin token"}[name] for name in sorted(names, reverse=True))

    def call(self, path, method, call):
        ident = re.sub(r"[^a-z0-9]+", "-", call["operationId"].lower())
        self.add(f'<h3 id="call-{ident}"><b class="method {method}">{method.upper()}</b> <code>{html.escape(path)}</code></h3>',
                 f'<p class="lead">{html.escape(call["summary"])} <span class="who">{self.who(call)}</span></p>',
                 self.prose(call.get("description")))
        parameters = [self.resolve(parameter) for parameter in call.get("parameters", [])]
        rows = [(f"<code>{html.escape(p['name'])}</code>" + (" <em>required</em>" if p.get("required") else ""), p["in"],
                 self.kind(p.get("schema", {})), self.meaning(p.get("schema", {}), p.get("description", "")))
                for p in parameters if p["name"] != "X-Request-Id"]
        self.table(("parameter", "in", "type", "meaning"), rows)
        if "requestBody" in call:
            self.body("The body", self.resolve(call["requestBody"]))
        self.answers(call["responses"])

    def body(self, title, body):
        for media, content in body.get("content", {}).items():
            schema = content.get("schema", {})
            self.add(f"<h4>{title}: <code>{html.escape(media)}</code>, {self.kind(schema)}</h4>")
            if title == "The body":
                self.table(("field", "type", "meaning"), self.fields(schema))

    def answers(self, responses):
        rows, common = [], []
        for status, response in responses.items():
            if self.is_common(status, response):
                common.append(f"<code>{status}</code>")
                continue
            resolved = self.resolve(response)
            types = ", ".join(self.kind(content.get("schema", {})) for content in resolved.get("content", {}).values())
            rows.append((f"<code>{status}</code>", types or "–", self.inline(resolved["description"])))
        self.add("<h4>Answers</h4>")
        self.table(("status", "body", "when"), rows)
        if common:
            self.add(f'<p class="common">Also {", ".join(common)}, as any call: see <a href="api.md#errors">errors</a>.</p>')

    def page(self):
        info = self.document["info"]
        self.add("<h1>API reference</h1>", self.prose(info["description"]),
                 '<p>The same as data: <a href="../openapi.json">openapi.json</a>. <a href="api.md">The page about the API</a> has the rules '
                 "that hold for all calls.</p>")
        for tag in self.document["tags"]:
            self.add(f"<h2>{tag['name'].capitalize()}</h2>", self.prose(tag["description"]))
            for path, calls in self.document["paths"].items():
                for method in METHODS:
                    if method in calls and tag["name"] in calls[method]["tags"]:
                        self.call(path, method, calls[method])
        self.add("<h2>Shapes</h2>", "<p>What the calls above name.</p>")
        for name, schema in self.document["components"]["schemas"].items():
            self.shape(name, schema)
        return "\n".join(self.out)

    def shape(self, name, schema):
        self.add(f'<h3 id="schema-{name.lower()}">{html.escape(name)}</h3>')
        if said := self.meaning(schema):
            self.add(f"<p>{said}</p>")
        rows = self.fields(schema)
        if rows:
            self.table(("field", "type", "meaning"), rows)
        else:
            self.add(f"<p>{self.kind(schema)}</p>")


def page(path, markdown):
    return Reference(yaml.safe_load(path.read_text()), markdown).page()

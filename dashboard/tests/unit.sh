#!/usr/bin/env bash
# The unit tests of the dashboard's model, without a browser: esbuild bundles them, node's own runner runs them.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/dashboard-tests/unit
rm -rf "$out"
NODE_PATH=/usr/share/nodejs esbuild dashboard/tests/unit/*.test.ts --bundle --platform=node --format=esm --target=node18 \
  --jsx=automatic --alias:marked=/usr/share/javascript/marked/marked.umd.js --out-extension:.js=.mjs --outdir="$out" \
  --log-level=warning "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"
DASHBOARD_REPO=$PWD node --test "$out"

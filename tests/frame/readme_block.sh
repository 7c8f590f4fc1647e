# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced. readme_block README MARKER: the code block that follows `<!-- MARKER -->`.
readme_block() {
  awk -v marker="<!-- $2 -->" '
    $0 == marker { wanted = 1; next }
    wanted && /^```/ { if (inside) exit; inside = 1; next }
    inside { print }' "$1"
}

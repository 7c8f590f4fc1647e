# SPDX-License-Identifier: Apache-2.0
# The options of a program's --help (CLI11's layout) as paragraphs of a man page: its groups are subsections. A description
# stands behind two spaces or on the lines below.
function escape(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  return text ~ /^[.']/ ? "\\&" text : text
}
function finish() {
  if (head == "") return
  name = head
  sub(/ .*/, "", name)
  values = substr(head, length(name) + 1)
  sub(/ \.\.\.$/, "", values) # CLI11's sign of a list
  sub(/^ /, "", values)
  print ".TP"
  print ".B " escape(name) (values == "" ? "" : " \\fI" escape(values) "\\fR")
  print escape(description)
  head = description = ""
}
/^[A-Za-z].*:$/ {
  finish()
  sub(/:$/, "")
  if ($0 != "Options" && $0 != "Positionals") print ".SS " escape($0)
  next
}
/^  -/ {
  finish()
  head = substr($0, 3)
  if (match(head, /  +/)) {
    description = substr(head, RSTART + RLENGTH)
    head = substr(head, 1, RSTART - 1)
  }
  next
}
/^          +[^ ]/ && head != "" {
  sub(/^ +/, "")
  description = description (description == "" ? "" : " ") $0
  next
}
{ finish() }
END { finish() }

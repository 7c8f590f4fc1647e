# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of check_topk, time_topk and compare_dumps in bash. What there is to complete is asked of the program on the line:
# options and their words of its --help, names of cases of its --list.

# The options of a program.
_exact_topk_options() {
  "$1" --help 2> /dev/null | grep -oE '^ *(-[a-zA-Z],)?--[a-z][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+'
}

# The words that an option takes: those that stand for its value, as on|off, or those that its description lists, as
# "launch, score or select".
_exact_topk_words() {
  "$1" --help 2> /dev/null | awk -v option="$2" '
    /^ +(-[a-zA-Z],)?--/ { on = 0 }
    $1 == option {
      on = 1
      if (match($0, "^ +" option " [a-z0-9|-]+"))
        for (i = split($2, values, "|"); i > 0; --i) print values[i]
      sub(/^ +/, "")
      $0 = match($0, /  +/) ? substr($0, RSTART) : ""
    }
    on {
      gsub(/[([][^])]*[])]/, "")
      sub(/^.*: /, "")
      gsub(/ or |[;,] */, "\n")
      count = split($0, values, "\n")
      for (i = 1; i <= count; ++i) {
        gsub(/^ +| +$/, "", values[i])
        if (values[i] ~ /^[a-z0-9][a-z0-9-]*$/) print values[i]
      }
    }'
}

# The names of the cases that the other words of the line choose.
_exact_topk_cases() {
  local program=$1
  shift
  local -a others=()
  while [[ $# != 0 ]]; do
    case $1 in
      --filter | --start-at) shift ;;
      *) others+=("$1") ;;
    esac
    shift || break
  done
  "$program" "${others[@]}" --list 2> /dev/null
}

_exact_topk() {
  # From the line itself: "=" is in the names of cases, and bash breaks words at it.
  local line=${COMP_LINE:0:COMP_POINT} current words
  local -a typed
  read -ra typed <<< "$line"
  current=
  if [[ $line != *[[:space:]] ]]; then
    current=${typed[-1]}
    unset 'typed[-1]'
  fi
  local option=${typed[-1]:-} before=
  case $option in
    --filter | --start-at) words=$(_exact_topk_cases "${typed[@]}") ;;
    --*)
      if [[ $current == -* ]]; then
        words=$(_exact_topk_options "$1")
      else
        words=$(_exact_topk_words "$1" "$option")
        [[ $current != *,* ]] || before=${current%,*},
      fi
      ;;
    *) [[ $current != -* && -n $current ]] || words=$(_exact_topk_options "$1") ;;
  esac
  local prefix=
  if [[ $current == *=* && $COMP_WORDBREAKS == *=* ]]; then prefix=${current%=*}=; fi
  COMPREPLY=()
  local word
  for word in $words; do
    word=$before$word
    [[ $word != "$current"* ]] || COMPREPLY+=("${word#"$prefix"}")
  done
}

complete -o default -F _exact_topk check_topk time_topk compare_dumps

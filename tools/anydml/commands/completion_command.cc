// Shell completion. The scripts only call this program, so they never become outdated: `anydml completion
// --words -- WORD...` prints the candidates for the last word, one per line, each with a tab and its
// description, and ":files" if file names are allowed.
#include "anydml/cli/completion.h"
#include "anydml/commands/commands.h"
#include "client/exit_status.h"
#include "client/suggest.h"

namespace anydml::client {
namespace {

constexpr Option kOptions[] = {
    {"--words", "", ValueKind::kText, "for the scripts: print what could stand in place of the last word"},
};

struct Shell {
  std::string_view name;
  std::string_view script;
};

// bash breaks words at '=' and ':' and replaces only what follows the last of them.
constexpr Shell kShells[] = {
    {"bash", R"(# bash completion for anydml
_anydml() {
  local line=${COMP_LINE:0:COMP_POINT} candidate current kept
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current=${words[-1]}
  kept=${current%"${current##*[=:]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    if [[ $candidate == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -f -- "${current#"$kept"}")
    else
      [[ $candidate == *= ]] && compopt -o nospace 2>/dev/null
      COMPREPLY+=("${candidate#"$kept"}")
    fi
  done < <("${words[0]}" completion --words -- "${words[@]:1}" 2>/dev/null)
}
complete -F _anydml anydml
)"},
    {"zsh", R"(#compdef anydml
# zsh completion for anydml
_anydml() {
  local line candidate description files=0
  local -a plain open plain_texts open_texts
  while IFS=$'\t' read -r candidate description; do
    if [[ $candidate == :files ]]; then
      files=1
    elif [[ $candidate == *= ]]; then
      open+=("$candidate") open_texts+=("$candidate  $description")
    else
      plain+=("$candidate") plain_texts+=("$candidate  $description")
    fi
  done < <("${words[1]}" completion --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#plain )) && compadd -l -d plain_texts -a plain
  (( $#open )) && compadd -S '' -l -d open_texts -a open
  if (( files )); then
    compset -P '*='
    _files
  fi
}
if [[ $funcstack[1] == _anydml ]]; then _anydml "$@"; else compdef _anydml anydml; fi
)"},
    {"fish", R"(# fish completion for anydml
function __anydml_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] completion --words -- $words[2..-1] "$current" 2>/dev/null)
        if test "$line" = ":files"
            set -l head (string match -r '^.*=' -- "$current")
            for path in (__fish_complete_path (string replace -r '^.*=' '' -- "$current"))
                echo "$head$path"
            end
        else
            echo $line
        end
    end
end
complete -c anydml -f -a '(__anydml_complete)'
)"},
};

Status Run(const Arguments& arguments, Output* output) {
  const std::vector<std::string>& operands = arguments.operands();
  if (arguments.Has("--words")) {
    const Candidates candidates = Complete(operands);
    std::string text;
    for (const Candidate& candidate : candidates.list) {
      text += StrCat(candidate.text, "\t", candidate.description, "\n");
    }
    output->Page(candidates.files ? text + ":files\n" : text);
    return {};
  }
  if (operands.size() != 1) return UsageError("completion takes one shell: bash, zsh or fish");
  std::vector<std::string_view> names;
  for (const Shell& shell : kShells) {
    names.push_back(shell.name);
    if (shell.name != operands[0]) continue;
    output->Page(shell.script);
    return {};
  }
  return UsageError("there is no completion for ", operands[0], " (bash, zsh, fish)",
                    DidYouMean(operands[0], names));
}

}  // namespace

const Command kCompletionCommand = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a script that completes commands, options, operators and fields",
    .description = R"(Prints a completion script. An installed package has them in place; otherwise:

  source <(anydml completion bash)                  # in ~/.bashrc
  source <(anydml completion zsh)                   # in ~/.zshrc, after compinit
  anydml completion fish | source                   # in ~/.config/fish/config.fish

Commands, options and their values, operators (op, operators), their fields and the
members of enumerations are completed; what they are is asked from the program itself.
)",
    .operand_kind = ValueKind::kShell,
    .executes = false,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client

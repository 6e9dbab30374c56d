#include "anydml/cli/completion.h"

#include <algorithm>

#include "anydml/commands/commands.h"
#include "client/adapters.h"
#include "client/describe/field_values.h"
#include "client/describe/operator_facts.h"

namespace anydml::client {
namespace {

class Completer {
 public:
  explicit Completer(std::span<const std::string> words) : word_(words.back()) {
    if (words.size() == 1) {
      for (const Command* command : AllCommands()) Add(command->name, command->summary);
      Add("--help", "list the commands");
      Add("--version", "print the version");
      return;
    }
    command_ = FindCommand(words[0]);
    if (command_ == nullptr) return;
    options_ = OptionsOf(*command_);
    const Option* pending = nullptr;
    std::vector<std::string> operands;
    for (const std::string& word : words.subspan(1, words.size() - 2)) {
      const Option* option = pending != nullptr ? nullptr : FindOption(word);
      if (pending == nullptr && !word.starts_with("-")) operands.push_back(word);
      pending = option != nullptr && option->needs_value() ? option : nullptr;
    }
    schema_ = operands.empty() ? nullptr : FindOperator(operands[0]);
    const size_t equals = word_.find('=');
    if (pending != nullptr) {
      AddValues(pending->kind, "");
    } else if (!word_.starts_with("-")) {
      AddOperands(operands);
    } else if (equals == std::string::npos) {
      for (const Option& option : options_) Add(option.name, option.help);
    } else if (const Option* option = FindOption(word_.substr(0, equals))) {
      AddValues(option->kind, word_.substr(0, equals + 1));
    }
  }

  Candidates Take() { return std::move(result_); }

 private:
  void Add(std::string_view text, std::string_view description) {
    if (text.starts_with(word_)) result_.list.push_back({std::string(text), std::string(description)});
  }

  const Option* FindOption(std::string_view name) const {
    const auto found = std::find_if(options_.begin(), options_.end(),
                                    [name](const Option& option) { return option.name == name; });
    return found == options_.end() ? nullptr : &*found;
  }

  void AddOperands(const std::vector<std::string>& operands) {
    if (command_->operand_kind == ValueKind::kField && !operands.empty()) {
      if (schema_ != nullptr) AddFields(operands);
    } else if (operands.empty()) {
      AddValues(command_->operand_kind == ValueKind::kField ? ValueKind::kOperator : command_->operand_kind,
                "");
    }
  }

  // "Field=" of fields that are not given yet, or the values of the last one.
  void AddFields(const std::vector<std::string>& operands) {
    const size_t equals = word_.find('=');
    for (const FieldSchema& field : schema_->fields) {
      const std::string head = StrCat(field.name, "=");
      if (equals != std::string::npos) {
        if (word_.starts_with(head)) AddFieldValues(field, head);
        continue;
      }
      const bool given = std::any_of(operands.begin(), operands.end(),
                                     [&head](const std::string& word) { return word.starts_with(head); });
      if (!given) Add(head, FieldTypeName(field));
    }
  }

  void AddFieldValues(const FieldSchema& field, const std::string& head) {
    if (field.type == FieldType::kTensor || field.type == FieldType::kTensorArray) result_.files = true;
    if (field.type == FieldType::kBool) {
      for (const char* value : {"true", "false"}) Add(head + value, "");
    }
    if (field.type == FieldType::kOperatorDesc || field.type == FieldType::kOperatorDescArray) {
      for (const FusionRule& rule : AllFusionRules()) {
        if (rule.host == 0 || rule.host == schema_->type) Add(head + FindOperator(rule.activation)->name, "");
      }
    }
    if (field.enumeration == nullptr) return;
    for (const EnumMember& member : field.enumeration->members) {
      Add(StrCat(head, ShortName(*field.enumeration, member)), "");
    }
  }

  void AddValues(ValueKind kind, const std::string& head) {
    switch (kind) {
      case ValueKind::kFile:
        result_.files = true;
        break;
      case ValueKind::kOperator:
        for (const OperatorSchema& schema : AllOperators()) {
          Add(head + schema.name, StrCat("since ", FeatureLevelName(schema.level)));
        }
        break;
      case ValueKind::kAdapter: {
        std::vector<Adapter> adapters;
        if (!ListAdapters(&adapters).ok()) break;
        for (const Adapter& adapter : adapters) Add(head + adapter.id, adapter.description);
        break;
      }
      case ValueKind::kFeatureLevel:
        for (const EnumMember& level : FindEnum("DML_FEATURE_LEVEL")->members) {
          Add(head + FeatureLevelName(level.value), "");
        }
        break;
      case ValueKind::kImplementation:
        AddImplementations(head);
        break;
      case ValueKind::kDataType:
        for (uint32_t i = 1; i < kDataTypeCount; ++i) Add(head + Name(static_cast<DataType>(i)), "");
        break;
      case ValueKind::kShell:
        for (const char* shell : {"bash", "fish", "zsh"}) Add(head + shell, "");
        break;
      case ValueKind::kText:
      case ValueKind::kField:
        break;
    }
  }

  // Of the named operator, or of all.
  void AddImplementations(const std::string& head) {
    for (const OperatorSchema& schema : AllOperators()) {
      if (schema_ != nullptr && schema_->type != schema.type) continue;
      for (const std::string& name : ImplementationsOf(schema)) {
        const std::string text = head + name;
        const bool known =
            std::any_of(result_.list.begin(), result_.list.end(),
                        [&text](const Candidate& candidate) { return candidate.text == text; });
        if (!known) Add(text, "");
      }
    }
  }

  const std::string word_;
  const Command* command_ = nullptr;
  std::vector<Option> options_;
  const OperatorSchema* schema_ = nullptr;  // of `op`
  Candidates result_;
};

}  // namespace

Candidates Complete(std::span<const std::string> words) {
  return words.empty() ? Candidates() : Completer(words).Take();
}

}  // namespace anydml::client

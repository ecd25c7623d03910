#include "msl/classify.h"
#include "msl/parse.h"

namespace mlx::core::vulkan::msl {

using Role = Word::Role;

void Classifier::keyword(size_t i) {
  const Word& word = words_[i];
  if (word.is("template")) {
    template_parameters(i);
  } else if (word.is("struct") || word.is("class") || word.is("enum")) {
    aggregate(i);
  } else if (word.is("using") && i + 2 < words_.size()) {
    if (words_[i + 1].is_name() && words_[i + 2].is("=")) {
      declare(
          words_[i + 1].token.text,
          in_template() ? Meaning::TypeTemplate : Meaning::Type);
      names_.insert(i + 1);
    }
  } else if (word.is("typedef")) {
    type_definition(i);
  } else if (word.is("operator")) {
    operator_name(i);
  }
}

// The last word of the declaration at `i`.
size_t Classifier::declaration_end(size_t i) const {
  bool aggregate = false;
  for (; i < words_.size(); ++i) {
    const Word& word = words_[i];
    if (word.is(";")) {
      return i;
    }
    if (word.is("}") || word.is(")") || word.is("]")) {
      return i;
    }
    aggregate |= word.is("struct") || word.is("class") || word.is("=") ||
        word.is("using");
    if (word.is("(") || word.is("[")) {
      i = pairs_[i];
    } else if (word.is("{")) {
      i = pairs_[i];
      bool more = i + 1 < words_.size() &&
          (words_[i + 1].is(",") || words_[i + 1].is("{"));
      if (!aggregate && !more) {
        return i;
      }
    }
  }
  return words_.size();
}

void Classifier::template_parameters(size_t i) {
  if (i + 1 >= words_.size() || !words_[i + 1].is("<")) {
    return; // an explicit instantiation
  }
  size_t open = i + 1, end = angle_end(open, false);
  if (end == SIZE_MAX) {
    return;
  }
  mark_angles(open, end);
  templated_name(end + 1, declaration_end(end + 1));
  push(NameScope::Kind::Template, declaration_end(end + 1));
  auto& names = scopes_.back()->names;
  int depth = 0;
  bool type = false, begins = true, named = false;
  for (size_t k = open + 1; k < end; ++k) {
    const Word& word = words_[k];
    if (word.is("(") || word.is("[")) {
      k = pairs_[k];
    } else if (word.is("...")) {
      throw Error(
          word.token.place,
          "Templates with any number of parameters are not supported; write "
          "one for each number that is used.");
    } else if (word.is("template") || word.is("auto")) {
      throw Error(
          word.token.place,
          "The parameter of a template is a type or a number here, not " +
              quoted(word.token.text) + ".");
    } else if (word.is("=") && depth == 0) {
      named = true;
    } else if (word.is("<")) {
      ++depth;
    } else if (word.is(">") || word.is(">>")) {
      depth -= word.is(">") ? 1 : 2;
    } else if (word.is(",") && depth == 0) {
      begins = true;
      named = false;
    } else if (begins) {
      type = word.is("typename") || word.is("class");
      begins = false;
    } else if (
        !named && depth == 0 && word.is_name() &&
        (words_[k + 1].is(",") || words_[k + 1].is("=") || k + 1 == end)) {
      names[word.token.text] = type ? Meaning::Type : Meaning::Variable;
      names_.insert(k);
      named = true;
    }
  }
}

// Makes the name of a function or variable template known.
void Classifier::templated_name(size_t i, size_t end) {
  for (; i < end && i < words_.size(); ++i) {
    const Word& word = words_[i];
    if (word.is("struct") || word.is("class") || word.is("using") ||
        word.is("template") || word.is("operator") || word.is("{")) {
      return;
    }
    if (word.is("decltype") && i + 1 < end && words_[i + 1].is("(")) {
      i = pairs_[i + 1];
      continue;
    }
    if (word.is("<")) {
      size_t close = angle_end(i, false);
      if (close == SIZE_MAX) {
        return;
      }
      i = close;
      continue;
    }
    bool named = i + 1 < words_.size() &&
        (words_[i + 1].is("(") || words_[i + 1].is("=") ||
         words_[i + 1].is("{"));
    if (word.is_name() && named) {
      bool constructor = false;
      for (const NameScope* scope : scopes_) {
        constructor |= scope->kind == NameScope::Kind::Struct &&
            scope->name == word.token.text;
      }
      if (!constructor) {
        declare(word.token.text, Meaning::ValueTemplate);
      }
      return;
    }
  }
}

// struct, class or enum.
void Classifier::aggregate(size_t i) {
  bool is_enum = words_[i].is("enum");
  if (!is_enum && i > 0 && words_[i - 1].is("enum")) {
    return; // seen from `enum`
  }
  size_t name = i + 1;
  if (is_enum && name < words_.size() &&
      (words_[name].is("class") || words_[name].is("struct"))) {
    ++name;
  }
  if (name >= words_.size()) {
    return;
  }
  std::string_view text;
  size_t next = name;
  if (words_[name].is_name()) {
    text = words_[name].token.text;
    next = name + 1;
    bool parameter = words_[i].is("class") && next < words_.size() &&
        (words_[next].is(",") || words_[next].is("=") || words_[next].is(">"));
    if (parameter) {
      return;
    }
    names_.insert(name);
    if (next < words_.size() && words_[next].is("<")) { // a specialization
      size_t end = angle_end(next, false);
      if (end == SIZE_MAX) {
        return;
      }
      mark_angles(next, end);
      next = end + 1;
    } else {
      declare(text, in_template() ? Meaning::TypeTemplate : Meaning::Type);
    }
  }
  if (text.empty() && !words_[name].is("{") && !words_[name].is(":")) {
    return;
  }
  while (next < words_.size() && !words_[next].is("{") &&
         !words_[next].is(";") && !words_[next].is(")")) {
    ++next;
  }
  if (next < words_.size() && words_[next].is("{")) {
    kinds_[next] = is_enum ? BraceKind::List : BraceKind::Struct;
    struct_names_[next] = text;
  }
}

// typedef float U, V;
void Classifier::type_definition(size_t i) {
  for (++i; i + 1 < words_.size() && !words_[i].is(";"); ++i) {
    if (words_[i].is("(") || words_[i].is("[") || words_[i].is("{")) {
      i = pairs_[i];
    } else if (words_[i].is("<")) {
      size_t end = angle_end(i, false);
      if (end == SIZE_MAX) {
        return;
      }
      i = end;
      continue;
    }
    const Word& next = words_[i + 1];
    if (words_[i].is_name() && (next.is(";") || next.is(",") || next.is("["))) {
      names_.insert(i);
      declare(words_[i].token.text, Meaning::Type);
    }
  }
}

// `operator+`, `operator()`; `operator float` is left to what follows.
void Classifier::operator_name(size_t i) {
  for (size_t k = i + 1; k < words_.size(); ++k) {
    Word& word = words_[k];
    bool call = k == i + 1 && (word.is("(") || word.is("["));
    if (!call && (word.is("(") || word.token.kind != Token::Kind::Punct)) {
      return;
    }
    word.role = Role::Fixed;
    word.spelling = word.token.text;
    if (call) {
      size_t close = pairs_[k];
      if (close != k + 1) {
        return;
      }
      words_[close].role = Role::Fixed;
      words_[close].spelling = words_[close].token.text;
      words_[close].glued = true;
      return;
    }
  }
}

} // namespace mlx::core::vulkan::msl

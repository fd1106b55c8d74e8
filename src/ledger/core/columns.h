// The table of columns of a noun: a line for each column, with its name, what is written there and
// how it is read. The texts of the statements, their parameters and the reading of rows are made
// from it, in its order, so a new column is a new line. A line leaves null what is not done with
// its column; `member` below names the function of a line that is meant.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "ledger/core/sql_driver.h"

namespace clawdforge {

// Among the columns that have `member`. A name that is not there does not compile.
template <class Columns, class Member>
consteval std::size_t column_at(const Columns& columns, Member member, std::string_view name) {
  std::size_t at = 0;
  for (const auto& column : columns) {
    if (column.*member == nullptr) continue;
    if (column.name == name) return at;
    ++at;
  }
  throw "there is no such column";
}

// "a, b, c".
template <class Columns, class Member>
std::string column_names(const Columns& columns, Member member) {
  std::string names;
  for (const auto& column : columns) {
    if (column.*member == nullptr) continue;
    if (!names.empty()) names += ", ";
    names += column.name;
  }
  return names;
}

// "$1, $2, $3".
inline std::string parameters(std::size_t count) {
  std::string numbers;
  for (std::size_t number = 1; number <= count; ++number) {
    numbers += fmt::format("{}${}", number == 1 ? "" : ", ", number);
  }
  return numbers;
}

// "INSERT INTO table (a, b) VALUES ($1, $2)".
template <class Columns, class Member>
std::string insert_into(std::string_view table, const Columns& columns, Member member) {
  const auto count = std::ranges::count_if(
      columns, [member](const auto& column) { return column.*member != nullptr; });
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, column_names(columns, member),
                     parameters(static_cast<std::size_t>(count)));
}

// "UPDATE table SET a = $2, b = $3", with the first number for the first of them.
template <class Columns, class Member>
std::string update_of(std::string_view table, const Columns& columns, Member member, int number) {
  std::string changes;
  for (const auto& column : columns) {
    if (column.*member == nullptr) continue;
    if (!changes.empty()) changes += ", ";
    changes += fmt::format("{} = ${}", column.name, number++);
  }
  return fmt::format("UPDATE {} SET {}", table, changes);
}

// The parameters of such a statement, after those that are in `row` already.
template <class Columns, class Member, class... Nouns>
SqlRow with_values(SqlRow row, const Columns& columns, Member member, const Nouns&... nouns) {
  row.reserve(row.size() + std::size(columns));
  for (const auto& column : columns) {
    if (column.*member != nullptr) row.push_back((column.*member)(nouns...));
  }
  return row;
}

// Reads a row of the columns that have `member`, in their order.
template <class Columns, class Member, class Noun>
void read_columns(const SqlRow& row, const Columns& columns, Member member, Noun& noun) {
  std::size_t at = 0;
  for (const auto& column : columns) {
    if (column.*member != nullptr) (column.*member)(noun, row.at(at++));
  }
}

}  // namespace clawdforge

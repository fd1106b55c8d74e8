#include "sessions/live/permissions.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

PermissionRequest question(const std::string& kind) {
  return {.ask_id = "0",
          .title = "say \"hi\"",
          .kind = kind,
          .options = {{"always", "Always", "allow_always"},
                      {"yes", "Yes", "allow_once"},
                      {"no", "No", "reject_once"}},
          .is_answered = false,
          .answer = {}};
}

std::string chosen(PermissionMode mode, const PermissionRequest& asked) {
  const auto decision = rule_for(mode, asked);
  return decision ? decision->option_id.value_or("cancelled") : "ask";
}

TEST(Permissions, TheModeDecides) {
  using enum PermissionMode;
  for (const char* kind : {"read", "search"}) {
    EXPECT_EQ(chosen(approve_reads, question(kind)), "yes");
    EXPECT_EQ(chosen(deny_all, question(kind)), "no");
  }
  for (const char* kind : {"edit", "delete", "move", "execute", "fetch", "think", "other", ""}) {
    EXPECT_EQ(chosen(approve_reads, question(kind)), "no") << kind;
    EXPECT_EQ(chosen(approve_all, question(kind)), "yes") << kind;
    EXPECT_EQ(chosen(ask, question(kind)), "ask") << kind;
  }
}

TEST(Permissions, TheNarrowestOptionIsTaken) {
  PermissionRequest only_always = question("edit");
  only_always.options = {{"for-ever", "Always", "allow_always"}, {"never", "No", "reject_always"}};
  EXPECT_EQ(chosen(PermissionMode::approve_all, only_always), "for-ever");
  EXPECT_EQ(chosen(PermissionMode::deny_all, only_always), "never");
}

TEST(Permissions, AQuestionWithoutTheOptionIsCancelled) {
  PermissionRequest only_yes = question("edit");
  only_yes.options = {{"yes", "Yes", "allow_once"}, {"odd", "Odd", "something_new"}};
  const Decision decision = rule_for(PermissionMode::deny_all, only_yes).value();
  EXPECT_FALSE(decision.is_allowed);
  EXPECT_FALSE(decision.option_id);
  EXPECT_EQ(name_of(decision), "cancelled");
}

TEST(Permissions, AreInTheAudit) {
  const Decision decision = rule_for(PermissionMode::approve_all, question("edit")).value();
  EXPECT_EQ(name_of(decision), "allow");
  EXPECT_EQ(audit_json("p-1", question("edit"), decision, "rule", PermissionMode::approve_all),
            R"({"id":"p-1","kind":"edit","decision":"allow","by":"rule","mode":"approve_all"})");
}

}  // namespace
}  // namespace clawdforge

"""Operations on a workspace: they check the state, start tasks and commit short edits."""

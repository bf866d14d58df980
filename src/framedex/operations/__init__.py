"""Operations on an open workspace: they check its state, start tasks and commit short edits."""

! heat: heat spreads over a plate that is cut into strips of columns, in Fortran with MPI.
!
!     srun --mpi=pmix --checkpoint ./heat NX NY STEPS [LEAVE_AT]
!
! Prints where it begins, and a hash of the last field, which does not depend on the number of ranks. LEAVE_AT: saves after that step and leaves
! without the end of the run, as if it were killed there.
program heat
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  use cairn
  implicit none
  integer :: rank, ranks, nx, ny, steps, leave_at, y0, my, left, right, step, x, y
  real(real64), allocatable, target :: u(:, :)
  real(real64), allocatable :: next(:, :)
  integer(int64) :: hash
  type(cairn_session) :: session
  type(cairn_report) :: report

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  nx = argument(1)
  ny = argument(2)
  steps = argument(3)
  leave_at = argument(4)

  y0 = ny * rank / ranks  ! columns before ours
  my = ny * (rank + 1) / ranks - y0
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  allocate (u(0:nx + 1, 0:my + 1), next(nx, my))
  u = 0  ! the halo at the rim stays so
  do y = 1, my
    do x = 1, nx
      u(x, y) = real(x * (y0 + y), real64) / (nx * ny)
    end do
  end do

  call cairn_open(session, rank=rank, world_size=ranks)
  call cairn_add_array(session, 'u', cairn_piece(u(1:nx, 1:my)), shape=[nx, ny], offset=[0, y0])
  call cairn_restore(session, report)
  if (rank == 0) print '(a, i0)', 'from ', report%step

  do step = int(report%step) + 1, steps
    call MPI_Sendrecv(u(0, 1), nx + 2, MPI_DOUBLE_PRECISION, left, 0, u(0, my + 1), nx + 2, MPI_DOUBLE_PRECISION, right, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(u(0, my), nx + 2, MPI_DOUBLE_PRECISION, right, 1, u(0, 0), nx + 2, MPI_DOUBLE_PRECISION, left, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    do y = 1, my
      do x = 1, nx
        next(x, y) = u(x, y) + 0.125_real64 * ((u(x - 1, y) + u(x + 1, y)) + (u(x, y - 1) + u(x, y + 1)) - 4 * u(x, y))
      end do
    end do
    u(1:nx, 1:my) = next
    if (step == leave_at .and. rank == 0) call cairn_save(session)
    call cairn_step(session, step)
    if (step == leave_at) then
      call cairn_wait(session)
      call MPI_Finalize()
      stop
    end if
  end do

  hash = 0
  do y = 1, my
    do x = 1, nx
      hash = ieor(hash, ishftc(transfer(u(x, y), hash), mod((y0 + y) * nx + x, 64)))
    end do
  end do
  call MPI_Allreduce(MPI_IN_PLACE, hash, 1, MPI_INTEGER8, MPI_BXOR, MPI_COMM_WORLD)
  if (rank == 0) print '(a, z16.16)', 'hash ', hash
  call cairn_finalize(session)
  call MPI_Finalize()

contains

  integer function argument(i)
    integer, intent(in) :: i
    character(20) :: text
    call get_command_argument(i, text)
    read (text, '(i20)') argument  ! 0 where there is none
  end function
end program
